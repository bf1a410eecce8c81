"""The switches of `lore` for whole books: assign, import, export, revisions and revert."""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import inlineCallbacks

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import (
    CommandError,
    Run,
    and_more,
    counted,
    revision_in_words,
)
from evennia_ai.commands.folder import new_file, offered, path_in, shown_path, size_of, text_file
from evennia_ai.commands.naming import (
    ACCESS,
    LORE_PLACES,
    place_named,
    scope_in_words,
    whole_number,
)
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.lore import named
from evennia_ai.commands.setup.lore.changes import save_book_edit, store_book
from evennia_ai.commands.setup.lore.named import written
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.scan.key_index import prepare_index
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls
from evennia_ai.formats.file_kinds import json_of_file
from evennia_ai.formats.lorebooks.books import read_book, unwrap_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.editing.comparing import book_differences, changed_ids
from evennia_ai.formats.lorebooks.editing.without_effect import (
    entry_texts,
    list_idle_fields,
    list_unknown_macros,
    list_wanted_extensions,
)
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.views.parse_cache import know_read
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.game import Conf
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.life_cycle import Revision, with_values_before
from evennia_ai.store.authored.lorebooks import LOREBOOKS, CheckedText, StoredBook

_MOST_LINES: Final = 200
_MOST_NOTICES: Final = 6
# The formats in which a book can be exported.
_FORMATS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Mapping[str, Any]]]] = {
    "v3": lambda data, name: as_v3(data, name=name),
    "world": lambda data, name: as_world(data),
}


class LoreBooks(CardWork):
    """The switches that move, assign and revert whole books."""

    def assign(self) -> None:
        book, scope, where = self._place("assign")
        if scope in LOREBOOKS.assigned_to(book):
            self.say(f"Lorebook {book} is assigned to {where} already; nothing was changed.")
            return
        LOREBOOKS.assign(book, scope, by=self.actor)
        self.say(f"Lorebook {book} is {self._assigned_to(book)} now.")

    def unassign(self) -> None:
        book, scope, where = self._place("unassign")
        if not LOREBOOKS.unassign(scope, book, by=self.actor):
            self.say(
                f"Lorebook {book} is not assigned to {where}; it is {self._assigned_to(book)}."
            )
            return
        self.say(
            f"Lorebook {book} is no longer assigned to {where}; it is {self._assigned_to(book)}."
        )

    @waits
    def import_file(self) -> Steps:
        """Store the lorebook of a file. The file is read whole before anything is written."""
        folder = conf().card_folder
        if not self.lhs:
            self.show(offered(folder))
            return
        if self.rhs is not None and not self.rhs:
            raise CommandError("Usage: lore/import <file> [= <name>]")
        path = path_in(folder, self.lhs, command="lore/import")
        read = partial(_read, path, self.lhs, conf())
        if size_of(path) >= named.LONG:
            text, book, told = yield self.worked(f"Reading {path.name}", lambda _: read())
        else:
            text, book, told = read()
        name = self.rhs or (book.label if book.label != _UNNAMED else self.lhs.split(".")[0])
        if named.card_called(name) is not None:
            yield self._imported_into_card(name, text.source, book)
            return
        named.refuse_card(name, "there is no approved card {card}. Nothing was imported.")
        known = named.stored_book(name)
        if known is not None:
            known = named.whole_book_to_change(self.caller, known.name)
        revision = known.revision if known else 0
        name = known.name if known else name
        write = partial(store.save_book, name, text, by=self.actor, seen_revision=revision)
        stored = yield store_book(write, len(text.source))
        # Under another name its entries get other labels, so `book` could not be reused.
        if book.label == stored.name:
            know_read(stored, book)
        if known is not None and stored.revision == known.revision:
            self.say(f"Lorebook {stored.name} has the same text already; nothing was changed.")
            return
        was = f"revision {known.revision} before" if known else "new"
        self.say(
            f"Imported lorebook {stored.name}, {counted(len(book.entries), 'entry', 'entries')},"
            f" revision {stored.revision} ({was}); {self._assigned_to(stored.name)}."
        )
        for notice in (*told, *book.notices)[:_MOST_NOTICES]:
            self.say(f"note: {notice}")

    @inlineCallbacks
    def _imported_into_card(self, name: str, text: str, book: Lorebook) -> Steps:
        """Replace the book inside a card by the book of a file."""
        made = unwrap_book(as_v3(json.loads(text), name=book.label))
        stored = yield save_book_edit(
            self, named.stored_book(name) or name, lambda _: made, by=self.actor
        )
        count = counted(len(book.entries), "entry", "entries")
        self.say(f"The book inside {stored.name} has {count} now. Revision {stored.revision}.")

    def export(self) -> None:
        book = named.book_named(self.caller, self.wanted("lore/export <book> [= v3 | world]"))
        for uid, locks in named.locks_there(book).items():
            if not lock_allows(self.caller, locks, "view"):
                raise CommandError(
                    f"You may not see all of lorebook '{book.name}': the lock of entry {uid} is"
                    f" {locks}. Nothing was written."
                )
        text, form = book.source, "to the letter"
        if self.rhs is not None or named.card_called(book.name):
            form = (self.rhs or "v3").lower()
            if form not in _FORMATS:
                raise CommandError(
                    f"'{self.rhs}' is no format; there are {' and '.join(_FORMATS)}."
                    " Nothing was written."
                )
            text = written(_FORMATS[form](json.loads(book.source), book.name)) + "\n"
        path = new_file(conf().card_folder, book.name, text.encode())
        self.say(
            f"Wrote lorebook {book.name} ({form}) to {path.name} in {shown_path(path.parent)}."
        )

    def revisions(self) -> None:
        """Show who changed a book.

        With a number, show what that revision changed in its entries.
        """
        self._refuse_revisions()
        name, changes = self._changes("lore/revisions <book> [= <revision>]", "view")
        if self.rhs is None:
            self.show(history_of(name, changes))
            return
        number = whole_number(self.rhs, what="revision")
        then = LOREBOOKS.revision(name, number)
        lock, _ = LOREBOOKS.locks_of(name, number)
        if not lock_allows(self.caller, lock, "view"):
            raise CommandError(
                f"There is no revision {number} of lorebook '{name}' that you may see."
            )
        older = LOREBOOKS.revision_before(name, number)
        head = f"Lorebook '{name}', revision {revision_in_words(then).strip()}:"
        was = text_of(older) if older else None
        told = self._differences(name, number, was, text_of(then)) or ["No entry is different."]
        self.show([clip_text(escape_controls(head), WIDTH), *diffed(told)])

    def _differences(
        self, name: str, number: int, before: str | None, after: str | None
    ) -> list[str]:
        """Return what differs between two texts of a book, for the entries the caller may see.

        The locks are those of the book at the revision with this number.
        """
        _, locks = LOREBOOKS.locks_of(name, number)
        lines = book_differences(
            before,
            after,
            sees=lambda uid: lock_allows(self.caller, locks.get(uid, ""), "view"),
        )
        if lines is None:
            return ["It is too long to be compared here; lore/export writes all of it."]
        return and_more(lines, most=_MOST_LINES)

    def revert(self) -> Run:
        """Revert a book to a revision, after a question. A removed book comes back."""
        _, value = self.both("lore/revert <book> = <revision>")
        self._refuse_revisions()
        number = whole_number(value, what="revision")
        name, changes = self._changes("lore/revert <book> = <revision>", "edit")
        if named.stored_book(name) is not None:
            named.whole_book_to_change(self.caller, name)
        self._refuse_locked(name, changes, number)
        return self._revert_after_yes(LOREBOOKS.then(name, number))

    def _revert_after_yes(self, then: StoredBook) -> Generator[str, Any, None]:
        name, number = then.name, then.revision
        was = LOREBOOKS.revisions(name)[-1]
        what = f"lorebook {name}"
        changes = self._differences(name, number, text_of(was), then.source)
        revert = partial(LOREBOOKS.revert, name, number, by=self.actor, seen_revision=was.number)
        if not (yield from self.goes_back(what, number, changes=changes, revert=revert)):
            return
        self._go_back(then, was, revert)

    @waits
    def _go_back(
        self, then: StoredBook, was: Revision[StoredBook], revert: Callable[[], StoredBook]
    ) -> Steps:
        name, number = then.name, then.revision

        def go() -> tuple[StoredBook, int]:
            back = revert()
            return back, named.entry_count(back)

        back, entries = yield store_book(go, len(then.source))
        count = counted(entries, "entry", "entries")
        self.say(
            f"Lorebook {name} is what it was at revision {number}; before it was revision"
            f" {was.number}, this is revision {back.revision}. It has {count};"
            f" {self._assigned_to(name)}."
        )

    def _refuse_revisions(self) -> None:
        named.refuse_card(
            self.lhs or "",
            "it changes with the card: card/revisions {card}, card/revert {card}.",
        )

    def _place(self, switch: str) -> tuple[str, Scope, str]:
        """Return the book's name and the typed place, as a scope and in words."""
        text, where = self.both(f"lore/{switch} <book> = <place>")
        named.refuse_card(text, "it is used wherever the card is played. Nothing was changed.")
        books = {book.name.casefold() for book in named.visible_books(self.caller)}
        if text.casefold() not in books and where.casefold() in books:
            raise self.turned_round(switch)
        book = named.book_to_change(self.caller, text)
        known = LOREBOOKS.assigned_to(book.name)
        scope = place_named(self.caller, where, kinds=LORE_PLACES, known=known, what="a lorebook")
        return book.name, scope, scope_in_words(scope)

    def _refuse_locked(
        self, name: str, changes: Sequence[Revision[StoredBook]], number: int
    ) -> None:
        """Raise CommandError if the lock of a removed entry or book forbids to bring it back."""
        gone = next((c for c in changes if c.action == "removed" and c.number > number), None)
        locks = [gone.value.locks] if gone else list(store.entry_locks(name).values())
        for lock in locks:
            if not all(lock_allows(self.caller, lock, access) for access in ACCESS):
                raise CommandError(
                    f"You may not bring back revision {number} of lorebook '{name}': the lock of"
                    f" what was removed is {lock}. Nothing was changed."
                )

    def _assigned_to(self, name: str) -> str:
        where = ", ".join(map(scope_in_words, LOREBOOKS.assigned_to(name)))
        return f"assigned to {where or 'nothing'}"

    def _changes(self, usage: str, access: str) -> tuple[str, tuple[Revision[StoredBook], ...]]:
        """Return the name and the changes of a book, if the caller has this access.

        The book may have been removed by now.
        """
        text = self.wanted(usage)
        stored = named.stored_book(text)
        name = stored.name if stored else text
        changes = LOREBOOKS.revisions(name)
        locks = stored.locks if stored else changes[-1].value.locks if changes else ""
        if not changes or not lock_allows(self.caller, locks, "view"):
            named.book_named(self.caller, text)
            raise CommandError(f"There are no revisions of a lorebook '{text}'.")
        if not lock_allows(self.caller, locks, access):
            raise CommandError(
                f"You may not change lorebook '{name}': its lock is {locks}. Nothing was changed."
            )
        return name, changes


_UNNAMED: Final = "book"


def _read(path: Path, file_name: str, given: Conf) -> tuple[CheckedText, Lorebook, tuple[str, ...]]:
    """Return the text of a file, its book, and notices about doubled or unused fields.

    A long book is also indexed for the turns to come. Any thread may call this.
    """
    most = given.max_source_characters
    content = text_file(path, file_name, most_characters=most)
    data, twice = json_of_file(content, wanted="book", where=file_name)
    text = content.decode("utf-8-sig")
    book = read_book(data)
    if len(text) >= named.LONG:
        prepare_index(book, rules=given.lore)
    asked = list_wanted_extensions(entry_texts(data))
    told = (*twice, *asked, *list_unknown_macros(data), *list_idle_fields(data))
    return store.checked_text(book.label, text, most=most), book, told


MOST_SHOWN: Final = 50
_MOST_COMPARED: Final = 10
_MOST_IDS: Final = 6


def history_of(name: str, changes: Sequence[Revision[StoredBook]]) -> list[str]:
    """Return the changes of a book, oldest first, with the entries that the newest ones changed."""
    lines = [f"Revisions of lorebook '{name}'; /revert goes back to one of them:"]
    if len(changes) > MOST_SHOWN:
        lines.append(f"       and {len(changes) - MOST_SHOWN} older ones")
    compared = {change.number for change in changes[-_MOST_COMPARED:]}
    for before, change in [*with_values_before(changes)][-MOST_SHOWN:]:
        lines.append(clip_text(escape_controls(revision_in_words(change)), WIDTH))
        if change.number in compared:
            older = text_of(before) if before else None
            told = _ids_in_words(older, text_of(change))
            lines += [clip_text(f"         {line}", WIDTH) for line in told]
    return lines


def text_of(change: Revision[StoredBook]) -> str | None:
    """Return the text that a revision made current, or None."""
    return LOREBOOKS.whole(change.value).source if change.takes_effect else None


def _ids_in_words(older: str | None, newer: str | None) -> Iterator[str]:
    """Yield one line for each kind of change, with the IDs of the entries."""
    for kind, uids in changed_ids(older, newer).items():
        if uids:
            more = "and {} more"
            ids = and_more([f"#{escape_controls(uid)}" for uid in uids], most=_MOST_IDS, more=more)
            yield f"{kind}: {', '.join(ids)}"
