"""The switches of `lore` that treat a book as a whole: files, where it counts, its revisions."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.commands.base import (
    CommandError,
    StrictCommand,
    counted,
    revision_in_words,
)
from evennia_ai.commands.folder import file_in, new_file, offered
from evennia_ai.commands.naming import ACCESS, place_named, scope_in_words, whole_number
from evennia_ai.commands.setup.lore import named
from evennia_ai.commands.setup.lore.named import written
from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import parse_json
from evennia_ai.game.mind.viewers import allows
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.formats.books import in_order, read_book, unwrapped
from evennia_ai.lorebook.formats.conversion import as_v3, as_world
from evennia_ai.prompt.components import Scope
from evennia_ai.settings.conf import conf
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import BookChange
from evennia_ai.text.columns import WIDTH, clipped, visible

MOST_SHOWN: Final = 50
# Of how many changes it is told what they changed, and in books up to which length: texts are read.
MOST_COMPARED: Final = 10
LONGEST_COMPARED: Final = 200_000
_MOST_IDS: Final = 6


def history_of(name: str, changes: Sequence[BookChange]) -> list[str]:
    """The changes of a book, oldest first, with what the newest ones changed."""
    lines = [f"Revisions of lorebook '{name}'; /revert goes back to one of them:"]
    if len(changes) > MOST_SHOWN:
        lines.append(f"       and {len(changes) - MOST_SHOWN} older ones")
    compared = {change.number for change in changes[-MOST_COMPARED:]}
    for at, change in list(enumerate(changes))[-MOST_SHOWN:]:
        lines.append(clipped(visible(revision_in_words(change)), WIDTH))
        if change.number in compared:
            older = changes[at - 1] if at else None
            lines += [clipped(f"         {told}", WIDTH) for told in _compared(older, change)]
    return lines


def _compared(older: BookChange | None, newer: BookChange) -> Iterator[str]:
    """What a change did to the entries, one line each kind; nothing where it is too long to say."""
    before = _entries(older) if older else {}
    after = _entries(newer)
    if before is None or after is None:
        return
    kinds = {
        "new": [uid for uid in after if uid not in before],
        "removed": [uid for uid in before if uid not in after],
        "changed": [uid for uid in after if uid in before and after[uid] != before[uid]],
    }
    for kind, uids in kinds.items():
        if uids:
            more = f" and {len(uids) - _MOST_IDS} more" if len(uids) > _MOST_IDS else ""
            ids = ", ".join(f"#{visible(uid)}" for uid in uids[:_MOST_IDS])
            yield f"{kind}: {ids}{more}"


def _entries(change: BookChange) -> Mapping[str, Any] | None:
    """The entries of a book after a change as their file says them, by id."""
    source = store.book_revision(change.name, change.number).source
    if source is None:
        return {}
    if len(source) > LONGEST_COMPARED:
        return None
    data = json.loads(source)
    try:
        read = read_book(data).entries
    except FormatError:  # stored by other means than the command, or by another version
        return None
    raw = in_order(unwrapped(data)["entries"])
    return {entry.uid: given for entry, (_, given) in zip(read, raw, strict=True)}


_MOST_NOTICES: Final = 6
# What a book can be exported as.
_FORMATS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]]] = {
    "v3": lambda data, name: as_v3(data, name=name),
    "world": lambda data, name: as_world(data),
}


class LoreBooks(StrictCommand):
    """Everything that moves whole books."""

    def attach(self) -> None:
        book, scope, where = self._place("attach")
        if scope in store.attachments(book):
            self.say(f"Lorebook {book} counts in {where} already; nothing was changed.")
            return
        store.attach(book, scope, by=self.typed_by)
        self.say(f"Lorebook {book} counts in {where} from now on; {self._counts_in(book)}.")

    def detach(self) -> None:
        book, scope, where = self._place("detach")
        if not store.detach(book, scope, by=self.typed_by):
            self.say(f"Lorebook {book} does not count in {where}; {self._counts_in(book)}.")
            return
        self.say(f"Lorebook {book} counts in {where} no longer; {self._counts_in(book)}.")

    def import_file(self) -> None:
        """Store the lorebook of a file; it is read whole before anything is written."""
        folder = conf().card_folder
        if not self.lhs:
            self.show(offered(folder))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: lore/import <file> [= <name>]")
        text, book, twice = _read(file_in(folder, self.lhs, command="lore/import"), self.lhs)
        name = self.rhs or (book.label if book.label != _UNNAMED else self.lhs.split(".")[0])
        known = named.stored_book(name)
        if known is not None:
            known = named.whole_book_to_change(self.caller, known.name)
        stored = store.save_book(
            known.name if known else name,
            text,
            by=self.typed_by,
            expected_revision=known.revision if known else 0,
        )
        if known is not None and stored.revision == known.revision:
            self.say(f"Lorebook {stored.name} has this very text already; nothing was changed.")
            return
        was = f"revision {known.revision} before" if known else "new"
        self.say(
            f"Imported lorebook {stored.name}, {counted(len(book.entries), 'entry', 'entries')},"
            f" revision {stored.revision} ({was}); {self._counts_in(stored.name)}."
        )
        for notice in (*twice, *book.notices)[:_MOST_NOTICES]:
            self.say(f"note: {notice}")

    def export(self) -> None:
        book = named.book_named(self.caller, self.wanted("lore/export <book> [= v3 | world]"))
        for uid, locks in named.locks_there(book).items():
            if not allows(self.caller, locks, "view"):
                raise CommandError(
                    f"You may not see all of lorebook '{book.name}': the lock of entry {uid} is"
                    f" {locks}. Nothing was written."
                )
        text, form = book.source, "to the letter"
        if self.rhs is not None:
            form = self.rhs.lower()
            if form not in _FORMATS:
                raise CommandError(
                    f"'{self.rhs}' is no format; there are {' and '.join(_FORMATS)}."
                    " Nothing was written."
                )
            text = written(_FORMATS[form](json.loads(book.source), book.name)) + "\n"
        path = new_file(conf().card_folder, book.name, text.encode())
        self.say(f"Wrote lorebook {book.name} ({form}) to {path.name} in {path.parent}.")

    def revisions(self) -> None:
        name, changes = self._changes("lore/revisions <book>", "view")
        self.refuse_value()
        self.show(history_of(name, changes))

    def revert(self) -> None:
        """Give a book the text it had at a revision; a removed one comes back."""
        _, value = self.both("lore/revert <book> = <revision>")
        number = whole_number(value, what="revision")
        name, changes = self._changes("lore/revert <book> = <revision>", "edit")
        was = changes[-1].number
        if named.stored_book(name) is not None:
            named.whole_book_to_change(self.caller, name)
        self._refuse_locked(name, changes, number)
        back = store.revert_book(name, number, by=self.typed_by)
        if back.revision == was:
            self.say(f"Lorebook {name} is so already; nothing was changed.")
            return
        count = counted(named.entry_count(back), "entry", "entries")
        self.say(
            f"Lorebook {name} is what it was at revision {number}; before it was revision {was},"
            f" this is revision {back.revision}. It has {count}; {self._counts_in(name)}."
        )

    def _place(self, switch: str) -> tuple[str, Scope, str]:
        """The book's name, and the place of it that was typed, as a scope and in words."""
        text, where = self.both(f"lore/{switch} <book> = <place>")
        book = named.book_to_change(self.caller, text)
        known = store.attachments(book.name)
        scope = place_named(self.caller, where, known=known)
        return book.name, scope, scope_in_words(scope)

    def _refuse_locked(self, name: str, changes: Sequence[BookChange], number: int) -> None:
        """Refuse to bring back what a lock keeps: of a removed entry, or of a removed book."""
        gone = next((c for c in changes if c.action == "removed" and c.number > number), None)
        locks = [gone.locks] if gone else list(store.entry_locks(name).values())
        for lock in locks:
            if not all(allows(self.caller, lock, access) for access in ACCESS):
                raise CommandError(
                    f"You may not bring back revision {number} of lorebook '{name}': the lock of"
                    f" what was removed is {lock}. Nothing was changed."
                )

    def _counts_in(self, name: str) -> str:
        where = ", ".join(map(scope_in_words, store.attachments(name)))
        return f"attached to {where}" if where else "attached to nothing"

    def _changes(self, usage: str, access: str) -> tuple[str, tuple[BookChange, ...]]:
        """The changes of a book that may be removed by now, where the caller may know of them."""
        text = self.wanted(usage)
        stored = named.stored_book(text)
        name = stored.name if stored else text
        changes = store.book_revisions(name)
        locks = stored.locks if stored else changes[-1].locks if changes else ""
        if not changes or not allows(self.caller, locks, "view"):
            named.book_named(self.caller, text)
            raise CommandError(f"There are no revisions of a lorebook '{text}'.")
        if not allows(self.caller, locks, access):
            raise CommandError(
                f"You may not change lorebook '{name}': its lock is {locks}. Nothing was changed."
            )
        return name, changes


_UNNAMED: Final = "book"


def _read(content: bytes, file_name: str) -> tuple[str, Lorebook, tuple[str, ...]]:
    """The text of a file, the book in it, and a notice for each member written twice."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"{file_name}: is no UTF-8 text (byte {error.start})"
        raise FormatError("book", problem) from error
    data, twice = parse_json(text, kind="book", where=file_name)
    return text, read_book(data), twice
