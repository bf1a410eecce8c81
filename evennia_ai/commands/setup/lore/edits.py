"""The switches of `lore` that make, change, lock and remove books and entries.

A change is one of the book's own JSON, stored as a revision that knows which one it was made from.
"""

import json
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from evennia_ai.commands.base import CommandError, Run, StrictCommand
from evennia_ai.commands.naming import any_whole_number, checked_locks, lost_by, whole_number
from evennia_ai.commands.setup.editor import KINDS, Edited, Kind, open_editor
from evennia_ai.commands.setup.lore import named, typed
from evennia_ai.commands.setup.lore.changes import (
    added,
    changed,
    content_of,
    created_with,
    removed,
    saved,
)
from evennia_ai.commands.setup.lore.named import (
    OpenEntry,
    entry_to_change,
    opened,
    written,
)
from evennia_ai.commands.setup.lore.typed import (
    field_named,
    in_words,
    place_in_words,
    said_of,
    typed_value,
)
from evennia_ai.errors import EditConflictError
from evennia_ai.lorebook.book import BOOK_MODES, entries_called
from evennia_ai.lorebook.editing.edits import (
    new_book,
    with_mode,
)
from evennia_ai.lorebook.entry import IN_HISTORY, LoreEntry, Patterns
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import StoredBook

ENTRY: Final = "<book>/<entry>"
_CREATE: Final = "lore/create <book>[/<entry name>] [= <key>, <key>: <content>]"
_LOCK: Final = "lore/lock <book>[/<entry>] [= <lock string | off>]"


class _Lockable(NamedTuple):
    """What has a lock: what it is called, the lock it has, and what gives it another."""

    label: str
    locks: str
    set: Callable[..., object]


class LoreEdits(StrictCommand):
    """Everything that changes what books and entries say."""

    def create(self) -> None:
        """Make a book, or an entry in a book, and the book with it where it is not there yet."""
        text = self.wanted(_CREATE)
        book, entry_name = named.split(text)
        if not entry_name:
            self._create_book(text)
            return
        keys, content = typed.keys_and_content(self.rhs or "")
        fields = {"name": entry_name, "content": content, **typed.with_patterns({"keys": keys})}
        is_first = named.stored_book(book) is None
        if is_first:
            found = created_with(book, fields, by=self.typed_by)
        else:
            found = self._added(named.book_to_change(self.caller, book), fields)
        of_book = f" in the new lorebook {book}, which counts nowhere yet" if is_first else ""
        self.say(
            f"Made {found.label}{of_book}; keys: {in_words(found.entry.keys)}; place:"
            f" {place_in_words(found.entry)}. Revision {found.of.stored.revision}."
        )
        if not content:
            self._open_editor(found)

    def edit(self) -> None:
        self.refuse_value()
        self._open_editor(self._entry("edit"))

    def keys(self) -> None:
        found = self._entry("keys", "<key>, <key>")
        fields = typed.with_patterns({"keys": typed.keys_in(self.rhs)}, of=found.entry)
        self._change(found, fields, "keys", lambda e: e.keys)

    def secondary(self) -> None:
        found = self._entry("secondary", "[any | all | not any | not all] <key>, <key>")
        fields = typed.with_patterns(typed.secondary_in(self.rhs), of=found.entry)
        self._change(found, fields, "secondary keys", _logic_and_keys)

    def depth(self) -> None:
        found = self._entry("depth", "<n | off>")
        if self.rhs.lower() != typed.NOTHING:
            depth = whole_number(self.rhs, what="depth", words="off")
            fields: dict[str, Any] = {"position": "depth", "depth": depth}
        elif found.entry.position in IN_HISTORY:
            fields = {"position": "after"}
        else:
            fields = {}
        self._change(found, fields, "place", place_in_words)

    def order(self) -> None:
        found = self._entry("order", "<n>")
        number = any_whole_number(self.rhs, what="order")
        self._change(found, {"order": number}, "order", lambda e: e.order)

    def position(self) -> None:
        found = self._entry("position", "<position>")
        self._change(found, typed.position_in(self.rhs), "place", place_in_words)

    def set_field(self) -> None:
        found = self._entry("set", "<field> <value>")
        word, _, value = self.rhs.partition(" ")
        field = field_named(word)
        if not value.strip():
            raise CommandError(
                f"{found.label}: {word} is {in_words(said_of(field, found.entry))}. To change it:"
                f" lore/set {self.lhs} = {word} <value>."
            )
        given = typed_value(field, value.strip())
        if field.name == "patterns" and given in get_args(Patterns):
            typed.check_patterns([*found.entry.keys, *found.entry.secondary_keys], given)
        self._change(found, {field.name: given}, word, partial(said_of, field))

    def enable(self) -> None:
        self.refuse_value()
        self._change(self._entry("enable"), {"enabled": True}, "state", lambda e: e.enabled)

    def switch_off(self) -> None:
        self.refuse_value()
        self._change(self._entry("off"), {"enabled": False}, "state", lambda e: e.enabled)

    def mode(self) -> None:
        text, value = self.both(f"lore/mode <book> = <{' | '.join(BOOK_MODES)}>")
        found = [mode for mode in BOOK_MODES if mode == value.lower()]
        if not found:
            raise CommandError(
                f"'{value}' is no mode of a lorebook; there are {' and '.join(BOOK_MODES)}."
                " Nothing was changed."
            )
        book, [mode] = named.book_to_change(self.caller, text), found
        if opened(book).book.mode == mode:
            self.say(f"Lorebook {book.name} is {mode} already; nothing was changed.")
            return
        after = saved(book, with_mode(json.loads(book.source), mode), by=self.typed_by)
        self.say(f"Lorebook {book.name} is {mode} from now on. Revision {after.revision}.")

    def remove(self) -> Generator[Any, Any, None] | None:
        self.refuse_value()
        text = self.wanted("lore/remove <book>[/<entry>]")
        if not named.split(text)[1]:
            book = named.whole_book_to_change(self.caller, text)
            return self._remove_after_yes(book)
        found = named.entry_to_change(self.caller, text)
        stored = removed(found, by=self.typed_by)
        self.say(
            f"Removed {found.label}; lore/revert {stored.name} = {found.of.stored.revision} brings"
            f" it back. Revision {stored.revision}."
        )
        return None

    def lock(self) -> Run:
        """Show, set or take away the lock; one that shuts out who types it after a question."""
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_LOCK}")
        thing = self._lockable()
        if self.rhs is None:
            self.say(f"{thing.label} has {_lock_in_words(thing.locks)}.")
            return None
        off = self.rhs.lower() == typed.NOTHING
        locks = "" if off else checked_locks(self.caller, self.rhs)
        if lost := lost_by(self.caller, locks):
            return self._lock_after_yes(thing, locks, lost)
        self._set_lock(thing, locks)
        return None

    def _open_editor(self, found: OpenEntry) -> None:
        open_editor(self.caller, "lore", _edited(found, by=self.typed_by), label=found.label)

    def _create_book(self, name: str) -> None:
        if self.rhs is not None:
            raise CommandError(f"Usage: {_CREATE}; name the entry that the text is for.")
        if named.stored_book(name) is not None:
            raise CommandError(f"There is a lorebook '{name}' already. Nothing was changed.")
        made = store.save_book(name, written(new_book(name)), by=self.typed_by, expected_revision=0)
        self.say(
            f"Made lorebook {made.name}, without entries. It counts nowhere yet:"
            f" lore/attach {made.name} = game."
        )

    def _added(self, stored: StoredBook, fields: Mapping[str, Any]) -> OpenEntry:
        """The entry in a book that has none of this name."""
        twins = entries_called(named.opened(stored).book, fields["name"])
        if twins:
            label = named.labelled(stored.name, twins[0])
            raise CommandError(f"There is {label} already; choose another name.")
        return added(stored, fields, by=self.typed_by)

    def _change(
        self,
        found: OpenEntry,
        fields: Mapping[str, Any],
        what: str,
        tell: Callable[[LoreEntry], Any],
    ) -> None:
        """Store new values, and say what was and what is."""
        before = in_words(tell(found.entry))
        after = changed(found, fields, by=self.typed_by) if fields else found
        if after is found:
            self.say(f"{found.label}: {what} so already: {before}; nothing was changed.")
            return
        self.say(
            f"{after.label}: {what} before: {before}; now: {in_words(tell(after.entry))}."
            f" Revision {after.of.stored.revision}."
        )

    def _entry(self, switch: str, value: str = "") -> OpenEntry:
        """The entry that is to be changed, and a value where the switch wants one."""
        usage = f"lore/{switch} {ENTRY}" + (f" = {value}" if value else "")
        if value:
            self.both(usage)
        return named.entry_to_change(self.caller, self.wanted(usage))

    def _remove_after_yes(self, book: StoredBook) -> Generator[Any, Any, None]:
        question = f"Remove lorebook {book.name}? /revert brings back all but where it counted."
        if not (yield from self.agreed(question)):
            self.say(f"Lorebook {book.name} stays.")
            return
        named.whole_book_to_change(self.caller, book.name)
        store.remove_book(book.name, by=self.typed_by, expected_revision=book.revision)
        self.say(
            f"Removed lorebook {book.name}; lore/revert {book.name} = {book.revision} brings it"
            " back."
        )

    def _lockable(self) -> _Lockable:
        """The book or the entry that was named, where the caller may do with its lock as typed."""
        text = self.wanted(_LOCK)
        book, entry = named.split(text)
        if not entry:
            find = named.book_named if self.rhs is None else named.book_to_change
            held = find(self.caller, book)
            lock_book = partial(store.set_book_locks, held.name)
            return _Lockable(f"Lorebook {held.name}", held.locks, lock_book)
        look = named.entry_named if self.rhs is None else named.entry_to_change
        found = look(self.caller, text)
        kept = found.of.entry_locks.get(found.entry.uid, "")
        lock_entry = partial(store.set_entry_locks, found.of.name, found.entry.uid)
        return _Lockable(found.label, kept, lock_entry)

    def _lock_after_yes(self, thing: _Lockable, locks: str, lost: str) -> Generator[str, Any, None]:
        shut_out = f"With the lock {locks} you could not {lost} {thing.label} any more"
        if not (yield from self.agreed(f"{shut_out}, nor take that back. Set it?")):
            self.say(f"The lock of {thing.label} stays; nothing was changed.")
            return
        now = self._lockable()
        if now.locks != thing.locks:
            raise CommandError(f"The lock of {now.label} was changed while you were asked.")
        self._set_lock(now, locks)

    def _set_lock(self, thing: _Lockable, locks: str) -> None:
        thing.set(locks, by=self.typed_by)
        lost = lost_by(self.caller, locks)
        out = f" You may not {lost} it any more." if lost else ""
        before, after = thing.locks or "none", locks or "none"
        self.say(f"{thing.label}: lock before: {before}; now: {after}.{out}")


def _logic_and_keys(entry: LoreEntry) -> tuple[str, ...]:
    """The secondary keys with their logic before the first."""
    first, *others = entry.secondary_keys or ("none",)
    return (f"{entry.logic.replace('_', ' ')}: {first}", *others)


def _lock_in_words(locks: str) -> str:
    return f"the lock {locks}" if locks else "no lock"


def _edited(found: OpenEntry, *, by: str) -> Edited:
    book, revision = found.of.name, found.of.stored.revision
    return {"book": book, "uid": found.entry.uid, "revision": revision, "by": by}


def _load(caller: Any, edited: Edited) -> str:
    return content_of(entry_to_change(caller, f"{edited['book']}#{edited['uid']}"))


def _save(caller: Any, edited: Edited, text: str) -> tuple[Edited, str]:
    found = entry_to_change(caller, f"{edited['book']}#{edited['uid']}")
    stored, by = found.of.stored, edited["by"]
    if stored.revision != edited["revision"]:
        last = store.book_revisions(stored.name)[-1].changed_by
        label = f"lorebook '{stored.name}'"
        raise EditConflictError(label, edited["revision"], stored.revision, last)
    after = changed(found, {"content": text}, by=by)
    told = f"Saved {after.label} as revision {after.of.stored.revision}."
    return _edited(after, by=by), told


KINDS["lore"] = Kind(_load, _save)
