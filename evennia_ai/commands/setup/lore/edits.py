"""The switches of `lore` that create, change, lock and remove books and entries.

Each change edits the book's own JSON and is stored as a revision that knows the revision it was
made from.
"""

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, get_args

from twisted.internet.defer import inlineCallbacks

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError, Run
from evennia_ai.commands.naming import any_whole_number, checked_locks, depth_typed, lost_by
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.editor import EDITOR_KINDS, Edited, EditorKind, open_editor
from evennia_ai.commands.setup.lore import named
from evennia_ai.commands.setup.lore.changes import (
    add_entry_to_book,
    change_entry_of_book,
    content_of,
    remove_entry_of_book,
    save_book_edit,
)
from evennia_ai.commands.setup.lore.named import (
    OpenEntry,
    entry_to_change,
    opened,
    written,
)
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import EditConflictError
from evennia_ai.engine.lorebook.book import BOOK_MODES, find_entries
from evennia_ai.engine.lorebook.entry import IN_HISTORY, LoreEntry, Patterns
from evennia_ai.engine.text.columns import WIDTH, wrap_text
from evennia_ai.engine.text.differences import diff_texts
from evennia_ai.formats.lorebooks.editing import typed
from evennia_ai.formats.lorebooks.editing.edits import (
    new_book,
    set_mode,
)
from evennia_ai.formats.lorebooks.editing.lints import describe_changing_entry
from evennia_ai.formats.lorebooks.editing.typed import (
    field_text,
    find_field,
    parse_value,
    place_in_words,
    value_in_words,
)
from evennia_ai.store.authored import lorebooks as store
from evennia_ai.store.authored.lorebooks import StoredBook

ENTRY: Final = "<book>/<entry>"
_MOST_KEY_WORDS: Final = 5
"""A longer key needs content after it, because it may be the content."""
_CREATE: Final = "lore/create <book>[/<entry name>] [= <key>, <key>: <content>]"
_LOCK: Final = "lore/lock <book>[/<entry>] [= <lock string | off>]"


class _Lockable(NamedTuple):
    """A book or an entry that can be locked. `set` stores a new lock."""

    label: str
    locks: str
    set: Callable[..., object]


def _remark(entry: LoreEntry) -> str:
    """Return a warning about a text that may not be placed before the history, or ""."""
    sentence = describe_changing_entry(entry)
    return f" Its text {sentence}." if sentence else ""


class LoreEdits(CardWork):
    """The switches that change the texts and locks of books and entries."""

    @waits
    def create(self) -> Steps:
        """Create a book, or an entry. An entry's book is created if it does not exist."""
        text = self.wanted(_CREATE)
        book, entry_name = named.split(text)
        if not entry_name:
            self._create_book(text)
            return
        keys, content = typed.parse_keys_and_content(self.rhs or "")
        if not content and any(len(key.split()) > _MOST_KEY_WORDS for key in keys):
            raise CommandError(
                "A key of so many words looks like the content. Type the keys and a colon before"
                f" it: {_CREATE}. Nothing was created.",
                instead=f"lore/create {text} = {entry_name}: {self.rhs}",
            )
        fields = {"name": entry_name, "content": content, **typed.with_patterns({"keys": keys})}
        is_first = named.stored_book(book) is None
        if not is_first:
            self._refuse_twin(named.book_to_change(self.caller, book), entry_name)
        elif named.card_called(book) is None:
            named.refuse_card(book, "there is no approved card {card}. Nothing was created.")
        found = yield add_entry_to_book(self, book, fields, by=self.actor)
        new = "in the card's new book" if named.card_called(book) else f"in the new lorebook {book}"
        where = "" if named.card_called(book) else ", which is assigned to nothing yet"
        of_book = f" {new}{where}" if is_first else ""
        self.say(
            f"Created {found.label}{of_book}; keys: {value_in_words(found.entry.keys)}; place:"
            f" {place_in_words(found.entry)}. Revision"
            f" {found.of.stored.revision}.{_remark(found.entry)}"
        )
        if not content:
            self._open_editor(found)

    @waits
    def edit(self) -> Steps:
        """Write the content of an entry, or open the editor on it."""
        found = self._entry("edit")
        if self.rhs is None:
            self._open_editor(found)
            return
        self.refuse_empty(off="lore/off")
        before = content_of(found)
        after = yield change_entry_of_book(self, found, {"content": self.rhs}, by=self.actor)
        if after is found:
            self.say(f"{found.label} has this content already; nothing was changed.")
            return
        told = f"Wrote {after.label}, revision {after.of.stored.revision}.{_remark(after.entry)}"
        self.show(diffed([*wrap_text(told, WIDTH), *diff_texts(before, self.rhs)]))

    @waits
    def keys(self) -> Steps:
        found = self._entry("keys", "<key>, <key>")
        fields = typed.with_patterns({"keys": typed.parse_keys(self.rhs)}, of=found.entry)
        yield self._change(found, fields, "keys", lambda e: e.keys)

    @waits
    def secondary(self) -> Steps:
        found = self._entry("secondary", "[any | all | not any | not all] <key>, <key>")
        fields = typed.with_patterns(typed.parse_secondary_keys(self.rhs), of=found.entry)
        yield self._change(found, fields, "secondary keys", _logic_and_keys)

    @waits
    def depth(self) -> Steps:
        found = self._entry("depth", "<n | normal | bottom>")
        depth = None if self.rhs.lower() == typed.NOTHING else depth_typed(self.rhs)
        if depth is not None:
            fields: dict[str, Any] = {"position": "depth", "depth": depth}
        elif found.entry.position in IN_HISTORY:
            fields = {"position": "after"}
        else:
            fields = {}
        yield self._change(found, fields, "place", place_in_words)

    @waits
    def order(self) -> Steps:
        found = self._entry("order", "<n>")
        number = any_whole_number(self.rhs, what="order")
        yield self._change(found, {"order": number}, "order", lambda e: e.order)

    @waits
    def position(self) -> Steps:
        found = self._entry("position", "<position>")
        yield self._change(found, typed.parse_position(self.rhs), "place", place_in_words)

    @waits
    def set_field(self) -> Steps:
        found = self._entry("set", "<field> <value>")
        word, _, value = self.rhs.partition(" ")
        field = find_field(word)
        if not value.strip():
            raise CommandError(
                f"{found.label}: {word} is {value_in_words(field_text(field, found.entry))}. To"
                " change it:"
                f" lore/set {self.lhs} = {word} <value>."
            )
        given = parse_value(field, value.strip())
        if field.name == "patterns" and given in get_args(Patterns):
            typed.check_patterns([*found.entry.keys, *found.entry.secondary_keys], given)
        yield self._change(found, {field.name: given}, word, partial(field_text, field))

    @waits
    def switch_on(self) -> Steps:
        yield self._change(self._entry("on"), {"enabled": True}, "state", lambda e: e.enabled)

    @waits
    def switch_off(self) -> Steps:
        yield self._change(self._entry("off"), {"enabled": False}, "state", lambda e: e.enabled)

    @waits
    def mode(self) -> Steps:
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
        after = yield save_book_edit(self, book, partial(set_mode, mode=mode), by=self.actor)
        self.say(f"Lorebook {book.name} is {mode} from now on. Revision {after.revision}.")

    def remove(self) -> Generator[Any, Any, None] | None:
        text = self.wanted("lore/remove <book>[/<entry>]")
        if not named.split(text)[1]:
            book = named.whole_book_to_change(self.caller, text)
            return self._remove_after_yes(book)
        self._remove_entry(named.entry_to_change(self.caller, text))
        return None

    @waits
    def _remove_entry(self, found: OpenEntry) -> Steps:
        stored = yield remove_entry_of_book(self, found, by=self.actor)
        back = f"{named.revert_of(stored.name)} = {found.of.stored.revision} brings it back"
        self.say(f"Removed {found.label}; {back}. Revision {stored.revision}.")

    @waits
    def _remove_own_book(self, book: StoredBook) -> Steps:
        yield save_book_edit(self, book, lambda _: None, by=self.actor)
        back = f"{named.revert_of(book.name)} = {book.revision} brings it back"
        self.say(f"Removed the book inside {book.name}; {back}.")

    def lock(self) -> Run:
        """Show, set or remove a lock. Ask first if the new lock would shut out the caller."""
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
        open_editor(self.caller, "lore", _edited(found), label=found.label)

    def _create_book(self, name: str) -> None:
        if self.rhs is not None:
            raise CommandError(f"Usage: {_CREATE}; name the entry that the text is for.")
        named.refuse_card(name, "name its first entry, lore/create card:{card}/<entry>.")
        if named.stored_book(name) is not None:
            raise CommandError(f"There is a lorebook '{name}' already. Nothing was changed.")
        made = store.save_book(name, written(new_book(name)), by=self.actor, seen_revision=0)
        self.say(
            f"Created lorebook {made.name}, without entries. It is assigned to nothing yet:"
            f" lore/assign {made.name} = game."
        )

    def _refuse_twin(self, stored: StoredBook, entry_name: str) -> None:
        twins = find_entries(named.opened(stored).book, entry_name)
        if twins:
            label = named.labelled(stored.name, twins[0])
            raise CommandError(f"There is {label} already; choose another name.")

    @inlineCallbacks
    def _change(
        self,
        found: OpenEntry,
        fields: Mapping[str, Any],
        what: str,
        tell: Callable[[LoreEntry], Any],
    ) -> Steps:
        """Store new values. Say what the field was before and is now."""
        before = value_in_words(tell(found.entry))
        after = found
        if fields:
            after = yield change_entry_of_book(self, found, fields, by=self.actor)
        if after is found:
            self.say(f"{found.label}: {what} already: {before}; nothing was changed.")
            return
        self.say(
            f"{after.label}: {what} before: {before}; now: {value_in_words(tell(after.entry))}."
            f" Revision {after.of.stored.revision}.{_remark(after.entry)}"
        )

    def _entry(self, switch: str, value: str = "") -> OpenEntry:
        """Return the entry to change. CommandError if a value is needed and missing."""
        usage = f"lore/{switch} {ENTRY}" + (f" = {value}" if value else "")
        if value:
            self.both(usage)
        return named.entry_to_change(self.caller, self.wanted(usage))

    def _remove_after_yes(self, book: StoredBook) -> Generator[Any, Any, None]:
        question = (
            f"Remove lorebook {book.name}? lore/revert brings it back, but not where it was"
            " assigned."
        )
        if not (yield from self.agreed(question)):
            self.say(f"Lorebook {book.name} stays.")
            return
        if named.card_called(book.name):
            self._remove_own_book(book)
            return
        store.LOREBOOKS.remove(book.name, by=self.actor, seen_revision=book.revision)
        self.say(
            f"Removed lorebook {book.name}; lore/revert {book.name} = {book.revision} brings it"
            " back."
        )

    def _lockable(self) -> _Lockable:
        """Return the named book or entry, if the caller may show or set its lock."""
        text = self.wanted(_LOCK)
        book, entry = named.split(text)
        named.refuse_card(book, "it has no locks. Nothing was changed.")
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
        shut_out = f"With the lock {locks} you could no longer {lost} {thing.label}"
        if not (yield from self.agreed(f"{shut_out} or undo this. Set it?")):
            self.say(f"The lock of {thing.label} stays; nothing was changed.")
            return
        now = self._lockable()
        if now.locks != thing.locks:
            raise CommandError(
                f"Another builder has changed the lock of {now.label} meanwhile. Look at it, then"
                " try again."
            )
        self._set_lock(now, locks)

    def _set_lock(self, thing: _Lockable, locks: str) -> None:
        thing.set(locks, by=self.actor)
        lost = lost_by(self.caller, locks)
        out = f" You can no longer {lost} it." if lost else ""
        before, after = thing.locks or "none", locks or "none"
        self.say(f"{thing.label}: lock before: {before}; now: {after}.{out}")


def _logic_and_keys(entry: LoreEntry) -> tuple[str, ...]:
    """Return the secondary keys, with their logic before the first."""
    first, *others = entry.secondary_keys or ("none",)
    return (f"{entry.logic.replace('_', ' ')}: {first}", *others)


def _lock_in_words(locks: str) -> str:
    return f"the lock {locks}" if locks else "no lock"


def _edited(found: OpenEntry) -> Edited:
    book, revision = found.of.name, found.of.stored.revision
    return {"book": book, "uid": found.entry.uid, "revision": revision}


def _load(caller: Any, edited: Edited) -> str:
    return content_of(entry_to_change(caller, f"{edited['book']}#{edited['uid']}"))


@inlineCallbacks
def _save(
    caller: Any, edited: Edited, text: str, by: Actor
) -> Generator[Any, Any, tuple[Edited, str]]:
    found = entry_to_change(caller, f"{edited['book']}#{edited['uid']}")
    stored = found.of.stored
    if stored.revision != edited["revision"]:
        label = f"lorebook '{stored.name}'"
        last = named.last_changed_by(stored.name)
        raise EditConflictError(label, edited["revision"], stored.revision, last)
    after = yield change_entry_of_book(CardWork.of(caller), found, {"content": text}, by=by)
    told = f"Saved {after.label} as revision {after.of.stored.revision}.{_remark(after.entry)}"
    return _edited(after), told


EDITOR_KINDS["lore"] = EditorKind(_load, _save, BUILDER_LOCK.format(key="lore"))
