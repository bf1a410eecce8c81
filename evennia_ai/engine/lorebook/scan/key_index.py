"""The index of a book's keys: the keys of its entries as numbers of one table, made ready once.

The flags of the rules and the values that macros in keys read decide how a key is looked for;
an index stays with its book, one for each such combination, and is shared by all NPCs.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter
from typing import Final

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import NO_GATES, LoreEntry, SourceName
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules, PresetFlags
from evennia_ai.engine.lorebook.scan.entry_keys import ALWAYS, EntryKeys, keys_decide
from evennia_ai.engine.lorebook.scan.key_reader import FilledKey, KeyReader
from evennia_ai.engine.lorebook.scan.matching import KeyTable
from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.templates.template import Template, compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import KEYS_WORK, Meter

_NO_DICE: Final = Dice(turn="", conversation="")
_KEPT_INDEXES: Final = 64
_KEPT_ENTRIES: Final = 50_000
# What means something in a regular expression.
_SYNTAX: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")


class KeysOfEntries:
    """The keys of the entries of a book by their index; most are made when they are asked for."""

    __slots__ = ("_entries", "_made", "_read")

    def __init__(
        self,
        read: Callable[[LoreEntry], EntryKeys],
        entries: Sequence[LoreEntry],
        made: dict[int, EntryKeys],
    ) -> None:
        self._read = read
        self._entries = entries
        self._made = made

    def __getitem__(self, index: int) -> EntryKeys:
        keys = self._made.get(index)
        if keys is None:
            keys = self._made[index] = self._read(self._entries[index])
        return keys

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, slots=True)
class BookIndex:
    """A book made ready for scanning."""

    entry_keys: KeysOfEntries
    table: KeyTable
    owners: Mapping[int, tuple[int, ...]]
    """Which entries a key may wake."""
    asked: tuple[int, ...]
    """Those that are judged in every turn, because keys alone do not decide."""
    alike: frozenset[int]
    """Those that are silent for one and the same reason where no key of theirs is found."""
    deepest: int
    sources: tuple[SourceName, ...]
    """Those that any entry asks for."""
    patterns: Mapping[int, Pattern]
    """Those that are looked for in the whole window as one text."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """What follows from all this."""

    def pattern_of(self, number: int) -> Pattern:
        """The pattern of this number."""
        return (self.patterns or self.table.patterns)[number]

    @property
    def has_patterns(self) -> bool:
        """Whether any key is a regular expression."""
        return bool(self.patterns or self.table.patterns)

    @property
    def troubles(self) -> int:
        """How many of the patterns cannot run."""
        running = self.patterns or self.table.patterns
        return sum(bool(pattern.problem) for pattern in running.values())


# By what of the rules says how keys are looked for, then by what their macros read.
_Indexes = dict[tuple[bool, bool, PresetFlags], dict[object, BookIndex]]
INDEXES: Final = Slot[_Indexes]("indexes")
_KEY_MACROS: Final = Slot[dict[str, Template]]("key macros")


def book_index_of(
    book: Lorebook, *, rules: ActivationRules, values: Mapping[str, str], dice: Dice
) -> BookIndex:
    """The book's index for these rules and values, made once."""
    by_rules = book.of_entries.setdefault(INDEXES, {})
    indexes = by_rules.setdefault(
        (rules.case_sensitive, rules.match_whole_words, PRESET_FLAGS[rules.rules]), {}
    )
    macros = _macros(book)
    seen = _seen(macros, values, dice)
    known = indexes.get(seen)
    if known is None:
        # Of a large book fewer are kept: each is as large as the book.
        most = min(_KEPT_INDEXES, 1 + _KEPT_ENTRIES // (1 + len(book.entries)))
        if len(indexes) >= most:
            indexes.clear()
        known = indexes[seen] = _made(book, rules, _filled(macros, values, dice))
    return known


def prepare_index(book: Lorebook, *, rules: ActivationRules) -> None:
    """Make the index for these rules, unless macros in keys ask for values of a turn."""
    if not _macros(book):
        book_index_of(book, rules=rules, values={}, dice=_NO_DICE)


def _macros(book: Lorebook) -> dict[str, Template]:
    """The keys of the book that have macros, compiled."""
    known = book.of_entries.get(_KEY_MACROS)
    if known is None:
        lists = (
            (entry.keys, entry.secondary_keys) if entry.gates is NO_GATES else entry.key_lists
            for entry in book.entries
        )
        listed = [keys for several in lists for keys in several if keys]
        written = {text for text in chain.from_iterable(listed) if "{{" in text}
        known = {text: compile_template(text, trust="imported") for text in sorted(written)}
        book.of_entries[_KEY_MACROS] = known
    return known


def _seen(macros: Mapping[str, Template], values: Mapping[str, str], dice: Dice) -> object:
    """What the macros of the keys read; () for nearly every book."""
    names = {name for template in macros.values() for name in template.names}
    rolls = any(template.rolls for template in macros.values())
    return (*((name, values.get(name)) for name in sorted(names)), dice if rolls else None)


def _filled(
    macros: Mapping[str, Template], values: Mapping[str, str], dice: Dice
) -> dict[str, FilledKey]:
    """What the keys with macros are; in a pattern a value stands for itself, whatever it holds."""
    named = {name for template in macros.values() for name in template.names}
    meant = {
        name: _SYNTAX.sub(r"\\\g<0>", value) for name, value in values.items() if name in named
    }
    meter = Meter(KEYS_WORK)
    plainly = fill_each(macros, values, dice, meter)
    in_patterns = fill_each(macros, meant, dice, meter)
    return {text: FilledKey(plainly[text], in_patterns[text]) for text in macros}


def _made(book: Lorebook, rules: ActivationRules, filled: Mapping[str, FilledKey]) -> BookIndex:
    reader = KeyReader(rules, filled=filled)
    entries = book.entries
    made, owners, plain = reader.book_keys(entries)
    entry_keys = KeysOfEntries(reader.entry_keys, entries, made)
    one_text = PRESET_FLAGS[rules.rules].one_text
    in_one_text = reader.patterns if one_text else {}
    table = KeyTable(reader.keys(), patterns={} if one_text else reader.patterns, fold=reader.fold)
    by_words = [at for at in plain if not entries[at].constant]  # which nothing else wakes
    others = sorted({*range(len(entries))}.difference(by_words))
    return BookIndex(
        entry_keys=entry_keys,
        table=table,
        owners=owners,
        asked=tuple(
            [at for at in others if _asked_always(entries[at], entry_keys[at], in_one_text)]
        ),
        alike=frozenset([at for at in by_words if _is_silent_as_others(entries[at])]),
        deepest=_deepest(book),
        sources=_sources(book),
        patterns=in_one_text,
    )


def _is_silent_as_others(entry: LoreEntry) -> bool:
    """Whether an entry whose keys are words is silent for the reason that most are silent for."""
    return bool(entry.keys) and entry.scan_depth is None and keys_decide(entry)


def _deepest(book: Lorebook) -> int:
    return max((depth for depth in map(attrgetter("scan_depth"), book.entries) if depth), default=0)


def _sources(book: Lorebook) -> tuple[SourceName, ...]:
    return tuple(sorted(set[SourceName]().union(*map(attrgetter("sources"), book.entries))))


def _asked_always(entry: LoreEntry, keys: EntryKeys, patterns: Mapping[int, Pattern]) -> bool:
    gates = entry.gates
    by_itself = entry.constant or gates.forced or gates.kept_after_match or ALWAYS in keys.primary
    if by_itself or patterns:
        return entry.is_usable and (by_itself or any(key in patterns for key in keys.primary))
    return False
