"""The switches of `lore` that make, change, lock and remove books and entries."""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from evennia_ai.commands.locks import checked_locks, lost_by
from evennia_ai.commands.naming import any_whole_number, whole_number
from evennia_ai.commands.setup.lore import changes, named, typed
from evennia_ai.commands.setup.lore.changes import open_editor
from evennia_ai.commands.setup.lore.named import OpenEntry
from evennia_ai.commands.setup.lore.shown import (
    field_named,
    in_words,
    place_in_words,
    said_of,
    typed_value,
)
from evennia_ai.commands.shown import shown_line
from evennia_ai.commands.strict import CommandError, Run, StrictCommand
from evennia_ai.lorebook.book import entries_called
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
    set: Callable[..., None]


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
            found = changes.created_with(book, fields, by=self.typed_by)
        else:
            found = self._added(named.book_to_change(self.caller, book), fields)
        of_book = f" in the new lorebook {book}, which counts nowhere yet" if is_first else ""
        self.say(
            f"Made {found.label}{of_book}; keys: {in_words(found.entry.keys)}; place:"
            f" {place_in_words(found.entry)}. Revision {found.of.stored.revision}."
        )
        if not content:
            open_editor(self.caller, found, by=self.typed_by)

    def edit(self) -> None:
        """Open the editor on an entry's content."""
        self.refuse_value()
        open_editor(self.caller, self._entry("edit"), by=self.typed_by)

    def keys(self) -> None:
        """Set the keys of an entry."""
        found = self._entry("keys", "<key>, <key>")
        fields = typed.with_patterns({"keys": typed.keys_in(self.rhs)}, of=found.entry)
        self._change(found, fields, "keys", lambda e: e.keys)

    def secondary(self) -> None:
        """Set the secondary keys of an entry, and how they decide."""
        found = self._entry("secondary", "[any | all | not any | not all] <key>, <key>")
        fields = typed.with_patterns(typed.secondary_in(self.rhs), of=found.entry)
        self._change(found, fields, "secondary keys", _logic_and_keys)

    def depth(self) -> None:
        """Put an entry into the history, or take it out again."""
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
        """Set what stands first at the same place."""
        found = self._entry("order", "<n>")
        number = any_whole_number(self.rhs, what="order")
        self._change(found, {"order": number}, "order", lambda e: e.order)

    def position(self) -> None:
        """Set where an entry stands."""
        found = self._entry("position", "<position>")
        self._change(found, typed.position_in(self.rhs), "place", place_in_words)

    def set_field(self) -> None:
        """Set one of the other fields."""
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
        """Let an entry take part."""
        self.refuse_value()
        self._change(self._entry("enable"), {"enabled": True}, "state", lambda e: e.enabled)

    def switch_off(self) -> None:
        """Keep an entry and let it never wake."""
        self.refuse_value()
        self._change(self._entry("off"), {"enabled": False}, "state", lambda e: e.enabled)

    def remove(self) -> Generator[Any, Any, None] | None:
        """Remove an entry, or a whole book once the builder said yes."""
        self.refuse_value()
        text = self.wanted("lore/remove <book>[/<entry>]")
        if not named.split(text)[1]:
            book = named.whole_book_to_change(self.caller, text)
            return self._remove_after_yes(book)
        found = named.entry_to_change(self.caller, text)
        stored = changes.removed(found, by=self.typed_by)
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

    def _create_book(self, name: str) -> None:
        if self.rhs is not None:
            raise CommandError(f"Usage: {_CREATE}; name the entry that the text is for.")
        if named.stored_book(name) is not None:
            raise CommandError(f"There is a lorebook '{name}' already. Nothing was changed.")
        made = changes.created(name, by=self.typed_by)
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
        return changes.added(stored, fields, by=self.typed_by)

    def _change(
        self,
        found: OpenEntry,
        fields: Mapping[str, Any],
        what: str,
        tell: Callable[[LoreEntry], Any],
    ) -> None:
        """Store new values, and say what was and what is."""
        before = in_words(tell(found.entry))
        after = changes.changed(found, fields, by=self.typed_by) if fields else found
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
        answer = yield shown_line(f"{question} yes/[no]")
        if str(answer).strip().lower() not in ("y", "yes"):
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
            return _Lockable(f"Lorebook {held.name}", held.locks, partial(_lock_book, held))
        look = named.entry_named if self.rhs is None else named.entry_to_change
        found = look(self.caller, text)
        kept = found.of.entry_locks.get(found.entry.uid, "")
        return _Lockable(found.label, kept, partial(_lock_entry, found))

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


def _lock_book(book: StoredBook, locks: str, *, by: str) -> None:
    store.set_book_locks(book.name, locks, by=by)


def _lock_entry(found: OpenEntry, locks: str, *, by: str) -> None:
    store.set_entry_locks(found.of.name, found.entry.uid, locks, by=by)


def _logic_and_keys(entry: LoreEntry) -> tuple[str, ...]:
    """The secondary keys with their logic before the first."""
    first, *others = entry.secondary_keys or ("none",)
    return (f"{entry.logic.replace('_', ' ')}: {first}", *others)


def _lock_in_words(locks: str) -> str:
    return f"the lock {locks}" if locks else "no lock"
