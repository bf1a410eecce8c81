"""What is scanned for keys, and what was found in it.

The window is the newest messages: the pending event first, then the history backwards, records
that injection depth does not count left out. Scanned notes belong to every window that is not
empty.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.matching import Hits, Key, KeyTable, Span, hits_of, make_key, searchable
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message

# Numbers of places that are no message of the history.
EVENT: Final = -1
NOTE: Final = -2
_KEPT_NOTES: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is scanned: the history, the event being answered, and texts that count as newest."""

    history: History
    event: Message | None = None
    texts: tuple[str, ...] = ()

    def newest(self) -> Iterator[tuple[int, Message]]:
        """Index and message, newest first; the event's index is `EVENT`."""
        if self.event is not None:
            yield EVENT, self.event
        history = self.history
        for index in range(history.stop - 1, history.earlier - 1, -1):
            message = history[index]
            if message.counted:
                yield index, message


class Found(NamedTuple):
    """The newest place of a key: its age in messages, which message, the span in it."""

    age: int
    message: int
    span: Span

    def __str__(self) -> str:
        if self.message == NOTE:
            return "in a note"
        where = "the event" if self.message == EVENT else f"message {self.message + 1}"
        if self.span.start < 0:
            return f"in the name of {where}"
        return f"in {where} at {self.span.start}-{self.span.end}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The keys of one entry as they are looked for; `depth` is its own scan depth."""

    keys: tuple[Key, ...]
    secondary: tuple[Key, ...]
    additional: tuple[tuple[Key, ...], ...]
    excluded: tuple[Key, ...]
    depth: int | None

    def all(self) -> Iterator[Key]:
        """Every key of the entry."""
        yield from self.keys
        yield from self.secondary
        yield from (key for line in self.additional for key in line)
        yield from self.excluded


class Window:
    """Where the keys of one book stand in what is scanned."""

    __slots__ = ("_found",)

    def __init__(self, found: dict[Key, Found]) -> None:
        self._found = found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._found)

    def first(self, keys: Iterable[Key], *, depth: int) -> tuple[int, Found] | None:
        """Which of `keys` is the first that stands in the newest `depth` messages, and where."""
        for at, key in enumerate(keys):
            found = self._found.get(key)
            if found is not None and found.age < depth:
                return at, found
        return None


class Scanner:
    """A book made ready for scanning with the flags of some rules.

    `owners` says which entries a key wakes; `deepest` is the deepest scan depth an entry states.
    """

    __slots__ = ("_notes", "_slot", "_table", "deepest", "owners", "wanted")

    def __init__(self, book: Lorebook, *, rules: ActivationRules) -> None:
        self.wanted = tuple(_wanted(entry, rules) for entry in book.entries)
        self.owners = _owners(self.wanted)
        self.deepest = max((wanted.depth or 0 for wanted in self.wanted), default=0)
        self._table = KeyTable(key for wanted in self.wanted for key in wanted.all())
        self._slot = ("lore", book.label, book.attach)
        self._notes: dict[str, Hits] = {}

    def window(self, scan: Scan, *, depth: int, include_names: bool) -> Window:
        """What stands in the newest messages, as deep as `depth` or any entry asks for."""
        found: dict[Key, Found] = {}
        depth = max(depth, self.deepest)
        messages = islice(scan.newest(), depth)
        for age, (index, message) in enumerate(messages):
            hits = hits_of(message, self._table, slot=self._slot, with_name=include_names)
            _add(found, hits, age, index)
            if age == 0:
                self._add_notes(found, scan.texts)
        if depth and not found:
            self._add_notes(found, scan.texts)
        return Window(found)

    def _add_notes(self, found: dict[Key, Found], texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._notes:
                if len(self._notes) >= _KEPT_NOTES:
                    self._notes.clear()
                self._notes[text] = self._table.hits(searchable(text))
            _add(found, self._notes[text], 0, NOTE)


def scanner_of(book: Lorebook, rules: ActivationRules) -> Scanner:
    """The book's scanner for these rules, made once."""
    slot = ("scanner", rules.case_sensitive, rules.match_whole_words)
    known = book.memo.get(slot)
    if not isinstance(known, Scanner):
        known = book.memo[slot] = Scanner(book, rules=rules)
    return known


def _add(found: dict[Key, Found], hits: Hits, age: int, index: int) -> None:
    for key, span in hits.items():
        if key not in found:
            found[key] = Found(age, index, span)


def _wanted(entry: LoreEntry, rules: ActivationRules) -> Wanted:
    """The entry's keys; those of an entry that can never be active are not looked for."""
    if not entry.enabled or entry.refused:
        return Wanted((), (), (), (), None)
    sensitive = rules.case_sensitive if entry.case_sensitive is None else entry.case_sensitive
    whole = entry.match_whole_words
    whole = rules.match_whole_words if whole is None else whole

    def keys(texts: Iterable[str]) -> tuple[Key, ...]:
        return tuple(make_key(text, sensitive=sensitive, whole=whole) for text in texts)

    return Wanted(
        keys=keys(entry.keys),
        secondary=keys(entry.secondary_keys),
        additional=tuple(keys(line) for line in entry.gates.additional),
        excluded=keys(entry.gates.excluded),
        depth=entry.scan_depth,
    )


def _owners(wanted: Iterable[Wanted]) -> dict[Key, tuple[int, ...]]:
    owners: dict[Key, list[int]] = {}
    for index, one in enumerate(wanted):
        for key in one.keys:
            owners.setdefault(key, []).append(index)
    return {key: tuple(indexes) for key, indexes in owners.items()}
