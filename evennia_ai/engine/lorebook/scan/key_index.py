"""The index of a lorebook's keys: all keys as numbers, prepared for scanning.

Equal keys of different entries share a number. Four things decide how a key is searched: its text,
the flags of its entry, the flags of the rules, and the values of its macros.

Most keys are plain words. They all get their numbers in a few steps, which is fast for ten thousand
keys. The keys of most entries are only made when the entry is judged. An index is cached in its
book, for each set of rules and macro values, and all NPCs share it.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import chain, compress, count, repeat
from operator import attrgetter
from typing import Any, Final, NamedTuple

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import (
    MAX_KEY,
    NO_GATES,
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    SOURCE_NAMES,
    LoreEntry,
    Patterns,
    SourceName,
)
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules, PresetFlags
from evennia_ai.engine.lorebook.scan.matching import Fold, How, Key, KeyTable, group_items
from evennia_ai.engine.lorebook.scan.regex.pattern import (
    Pattern,
    Refused,
    has_slashes,
    read_pattern,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Memo, Slot, typed_frozen
from evennia_ai.engine.prompt.templates.template import Template, compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import KEYS_WORK, Meter
from evennia_ai.engine.text.normal_form import normal_form

# Numbers for keys that need no search: a key that is always found, and one that never is.
ALWAYS: Final = -1
NEVER: Final = -2


@typed_frozen
class EntryKeys:
    """The keys of one entry: numbers to search for, and texts for the reasons of verdicts."""

    primary: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    secondary: tuple[int, ...] = ()
    secondary_texts: tuple[str, ...] = ()
    additional: tuple[tuple[int, ...], ...] = ()
    excluded: tuple[int, ...] = ()
    refused: str = ""
    """The keys of the entry that can never be found, each with the reason, as one text."""
    scored: tuple[int, ...] = ()
    """The numbers of the keys that count in the entry's score in inclusion groups."""
    scored_secondary: tuple[int, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    barred: bool = False
    """True if the entry never becomes active, because a regular expression in it is unusable."""
    keys_decide: bool = False
    """True if nothing but its keys decides whether the entry becomes a candidate."""
    hidden: str = ""
    """Keys that recursion finds in the entry's text but readers do not see, one on each line."""

    @property
    def numbers(self) -> Iterator[int]:
        """Yield the numbers of all keys of the entry."""
        yield from self.primary
        yield from self.secondary
        for line in self.additional:
            yield from line
        yield from self.excluded


def keys_decide(entry: LoreEntry) -> bool:
    """True if nothing but its keys decides whether an entry becomes a candidate.

    `judge_entry` checks nothing but the keys of such an entry. So this function must test every
    other field that can keep an entry inactive.
    """
    timing, recursion = entry.timing, entry.recursion
    return not (
        entry.constant
        or entry.conditions
        or (entry.secondary_keys and entry.selective)
        or (entry.grouping is not NO_GROUPS and entry.grouping.names)
        or (timing is not NO_TIMING and (timing.delay or timing.cooldown))
        or (entry.gates is not NO_GATES and entry.gates != NO_GATES)
        or (recursion is not NO_RECURSION and (recursion.delay_level or recursion.excluded))
    )


class BookKeys(NamedTuple):
    """The keys of all entries of a lorebook, as numbers."""

    made: dict[int, EntryKeys]
    """The keys of each entry that is not in `plain`, by index. Other keys are made when needed."""
    owners: dict[int, tuple[int, ...]]
    """The indexes of the entries that each key may activate, by number of the key."""
    plain: Sequence[int]
    """The indexes of the entries whose keys are all plain words or phrases."""


_NO_DICE: Final = Dice(turn="", conversation="")
_KEPT_INDEXES: Final = 64
_KEPT_ENTRIES: Final = 50_000
# Matches characters with a special meaning in a regular expression.
_SYNTAX: Final = re.compile(r"[\\^$.*+?()\[\]{}|/]")


class KeysOfEntries:
    """The keys of each entry of a book, by index. Most keys are made when they are first used."""

    __slots__ = ("_entries", "made", "reader")

    def __init__(
        self, reader: "KeyReader", entries: Sequence[LoreEntry], made: dict[int, EntryKeys]
    ) -> None:
        self.reader = reader
        self._entries = entries
        self.made = made

    def __getitem__(self, index: int) -> EntryKeys:
        keys = self.made.get(index)
        if keys is None:
            keys = self.made[index] = self.reader.entry_keys(self._entries[index])
        return keys

    def __len__(self) -> int:
        return len(self._entries)


@dataclass(frozen=True, slots=True)
class BookIndex:
    """The keys of a lorebook, prepared for scanning. Entries are given by index in the book."""

    entry_keys: KeysOfEntries
    table: KeyTable
    owners: Mapping[int, tuple[int, ...]]
    """The entries that each key may activate, by number of the key."""
    others: Sequence[int]
    """The entries that have other keys than plain words or phrases."""
    always_judged: tuple[int, ...]
    """The entries that each turn judges, because they may become active without a found key."""
    alike: frozenset[int]
    """The entries that all have the same reason in their verdict if none of their keys is found."""
    deepest: int
    """The greatest scan depth that an entry of the book sets."""
    sources: tuple[SourceName, ...]
    """The sources outside the conversation that at least one entry asks to search, in the order of
    the search."""
    patterns: Mapping[int, Pattern]
    """The regular expressions to search in all messages as one text, by number of the key."""
    memo: Memo = field(default_factory=Memo, repr=False, compare=False)
    """Cached results that depend only on this index."""

    def pattern_of(self, number: int) -> Pattern:
        """Return the regular expression of the key with this number."""
        return (self.patterns or self.table.patterns)[number]

    @property
    def has_patterns(self) -> bool:
        """True if any key of the book is a regular expression."""
        return bool(self.patterns or self.table.patterns)

    @property
    def troubles(self) -> int:
        """Return how many regular expressions of the book cannot run."""
        running = self.patterns or self.table.patterns
        return sum(bool(pattern.problem) for pattern in running.values())

    def to_json(self) -> dict[str, Any]:
        """Return the index of a book without macros in its keys as a JSON value."""
        reader, made = self.entry_keys.reader, self.entry_keys.made
        running = self.patterns or self.table.patterns
        numbers = {pattern: number for number, pattern in running.items()}
        return {
            "numbers": [[*flags, dict(known)] for flags, known in reader.numbers.items()],
            "patterns": [[number, pattern.written] for number, pattern in running.items()],
            "made": [[at, _keys_to_json(made[at], numbers)] for at in self.others],
            "owners": list(self.owners.items()),
            "others": self.others,
            "always_judged": self.always_judged,
            "alike": sorted(self.alike),
            "deepest": self.deepest,
            "sources": self.sources,
            "table": self.table.to_json(),
        }


def index_from_json(
    value: Mapping[str, Any], entries: Sequence[LoreEntry], *, rules: ActivationRules
) -> BookIndex:
    """Return the index that `to_json` wrote, for the same entries and rules.

    Raises:
        ValueError: a regular expression cannot run here.
    """
    reader = KeyReader(rules, filled={})
    for *flags, numbers in value["numbers"]:
        reader.numbers_of(*flags).update(numbers)
    parsed = {number: read_pattern(written) for number, written in value["patterns"]}
    patterns = {number: one for number, one in parsed.items() if isinstance(one, Pattern)}
    if len(patterns) < len(parsed):
        raise ValueError("a regular expression of its keys cannot run here")
    made = {at: _keys_from_json(keys, patterns) for at, keys in value["made"]}
    one_text = PRESET_FLAGS[rules.rules].one_text
    in_table: Mapping[int, Pattern] = {} if one_text else patterns
    return BookIndex(
        entry_keys=KeysOfEntries(reader, entries, made),
        table=KeyTable.from_json(value["table"], patterns=in_table, fold=reader.fold),
        owners=dict(value["owners"]),
        others=value["others"],
        always_judged=tuple(value["always_judged"]),
        alike=frozenset(value["alike"]),
        deepest=value["deepest"],
        sources=tuple(value["sources"]),
        patterns=patterns if one_text else {},
    )


_KEY_FIELDS: Final = tuple(one.name for one in fields(EntryKeys))


def _keys_to_json(keys: EntryKeys, numbers: Mapping[Pattern, int]) -> dict[str, Any]:
    said = {name: getattr(keys, name) for name in _KEY_FIELDS}
    said["patterns"] = [numbers[pattern] for pattern in keys.patterns]
    return {name: value for name, value in said.items() if value}


def _keys_from_json(value: Mapping[str, Any], patterns: Mapping[int, Pattern]) -> EntryKeys:
    said: dict[str, Any] = {n: tuple(v) if type(v) is list else v for n, v in value.items()}
    said["additional"] = tuple(map(tuple, value.get("additional", ())))
    said["patterns"] = tuple([patterns[number] for number in value.get("patterns", ())])
    return EntryKeys(**said)


# The indexes of a book, by two keys: the rules that decide how keys are searched, and the values
# that macros in keys read.
_Indexes = dict[tuple[bool, bool, PresetFlags], dict[object, BookIndex]]
INDEXES: Final = Slot[_Indexes]("indexes")
_KEY_MACROS: Final = Slot[dict[str, Template]]("key macros")


def book_index_of(
    book: Lorebook, *, rules: ActivationRules, values: Mapping[str, str], dice: Dice
) -> BookIndex:
    """Return the index of a lorebook for these rules and macro values. It is cached in the book.

    Args:
        book: The lorebook.
        rules: The rules that decide how keys are searched.
        values: The values that macros in keys read.
        dice: The random numbers for macros in keys.
    """
    indexes = _indexes_of(book, rules)
    macros = _keys_with_macros(book)
    seen = _values_read(macros, values, dice)
    known = indexes.get(seen)
    if known is None:
        # An index is as large as its book, so a large book caches fewer indexes.
        most = min(_KEPT_INDEXES, 1 + _KEPT_ENTRIES // (1 + len(book.entries)))
        if len(indexes) >= most:
            indexes.clear()
        known = indexes[seen] = _build_index(book, rules, _fill_in_keys(macros, values, dice))
    return known


def _indexes_of(book: Lorebook, rules: ActivationRules) -> dict[object, BookIndex]:
    by_rules = book.of_entries.setdefault(INDEXES, {})
    read = (rules.case_sensitive, rules.match_whole_words, PRESET_FLAGS[rules.rules])
    return by_rules.setdefault(read, {})


def stored_index(book: Lorebook, *, rules: ActivationRules) -> BookIndex | None:
    """Return the index that can be stored with a book; None if its keys have macros."""
    if _keys_with_macros(book):
        return None
    return book_index_of(book, rules=rules, values={}, dice=_NO_DICE)


def keep_index(book: Lorebook, index: BookIndex, *, rules: ActivationRules) -> None:
    """Cache the stored index of a book whose keys have no macros."""
    book.of_entries[_KEY_MACROS] = {}
    _indexes_of(book, rules)[_values_read({}, {}, _NO_DICE)] = index


def prepare_index(book: Lorebook, *, rules: ActivationRules) -> None:
    """Make a lorebook's index for these rules in advance, if its keys have no macros."""
    stored_index(book, rules=rules)


def _keys_with_macros(book: Lorebook) -> dict[str, Template]:
    """Return the keys that have macros, by the key as written, each as a compiled template."""
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


def _values_read(macros: Mapping[str, Template], values: Mapping[str, str], dice: Dice) -> object:
    """Return the values that the macros in these keys read, and the dice if a macro rolls."""
    names = {name for template in macros.values() for name in template.names}
    rolls = any(template.rolls for template in macros.values())
    return (*((name, values.get(name)) for name in sorted(names)), dice if rolls else None)


class FilledKey(NamedTuple):
    """A key after its macros were expanded, for use as plain words and as a regular expression."""

    words: str
    pattern: str


def _fill_in_keys(
    macros: Mapping[str, Template], values: Mapping[str, str], dice: Dice
) -> dict[str, FilledKey]:
    """Expand the macros of keys. In the regular expressions, the inserted values are escaped."""
    named = {name for template in macros.values() for name in template.names}
    meant = {
        name: _SYNTAX.sub(r"\\\g<0>", value) for name, value in values.items() if name in named
    }
    meter = Meter(KEYS_WORK)
    plainly = fill_each(macros, values, dice, meter)
    in_patterns = fill_each(macros, meant, dice, meter)
    return {text: FilledKey(plainly[text], in_patterns[text]) for text in macros}


def _build_index(
    book: Lorebook, rules: ActivationRules, filled: Mapping[str, FilledKey]
) -> BookIndex:
    reader = KeyReader(rules, filled=filled)
    entries = book.entries
    made, owners, plain = reader.book_keys(entries)
    others_made = list(made)
    entry_keys = KeysOfEntries(reader, entries, made)
    one_text = PRESET_FLAGS[rules.rules].one_text
    in_one_text = reader.patterns if one_text else {}
    table = KeyTable(reader.keys(), patterns={} if one_text else reader.patterns, fold=reader.fold)
    by_words = [
        at for at in plain if not entries[at].constant
    ]  # entries that only keys can activate
    others = sorted({*range(len(entries))}.difference(by_words))
    return BookIndex(
        entry_keys=entry_keys,
        table=table,
        owners=owners,
        others=others_made,
        always_judged=tuple(
            [at for at in others if _needs_judging(entries[at], entry_keys[at], in_one_text)]
        ),
        alike=frozenset([at for at in by_words if _is_silent_as_others(entries[at])]),
        deepest=_deepest(book),
        sources=_sources(book),
        patterns=in_one_text,
    )


def _is_silent_as_others(entry: LoreEntry) -> bool:
    """True if an entry whose keys are not found gets the same reason as most entries do."""
    return bool(entry.keys) and entry.scan_depth is None and keys_decide(entry)


def _deepest(book: Lorebook) -> int:
    return max((depth for depth in map(attrgetter("scan_depth"), book.entries) if depth), default=0)


def _sources(book: Lorebook) -> tuple[SourceName, ...]:
    asked = set[SourceName]().union(*map(attrgetter("sources"), book.entries))
    return tuple([name for name in SOURCE_NAMES if name in asked])


def _needs_judging(entry: LoreEntry, keys: EntryKeys, patterns: Mapping[int, Pattern]) -> bool:
    """True if an entry may become active even if no key of it is found in the index."""
    gates = entry.gates
    by_itself = entry.constant or gates.forced or gates.kept_after_match or ALWAYS in keys.primary
    if by_itself or patterns:
        return entry.is_usable and (by_itself or any(key in patterns for key in keys.primary))
    return False


# Assignment of numbers to keys

# Placeholder for the number of a key that is read separately, because more than its text and its
# flags decides how it is searched.
_TO_READ: Final = -3
_SHOWN_REFUSALS: Final = 3


_NO_KEYS: Final = EntryKeys()


# Does the same as `Key._make`, but in C, because a book may have ten thousand keys.
_as_key: Final[Callable[[Iterable[object]], Key]] = partial(tuple.__new__, Key)


class _Numbers(dict[str, int]):
    """The numbers of keys, by the key as written, for entries that have equal flags."""

    def __init__(
        self,
        keys: dict[Key | str, int],
        *,
        hows: Callable[[Sequence[str]], Iterable[How]],
        fold: Fold | None,
        odd: str,
    ) -> None:
        super().__init__()
        self._keys = keys
        self._search_modes = hows
        # The function that removes the letter case of keys; None if case matters.
        self._fold = fold
        # Keys that begin with this text must be read one by one.
        self._odd = odd
        self._to_read: set[str] = set()

    def __missing__(self, written: str) -> int:
        self.take_in([written])
        return self[written]

    def take_in(self, written: Iterable[str]) -> None:
        """Give numbers to all these keys at once. Each step processes all keys."""
        fresh = [one for one in dict.fromkeys(written) if one not in self]
        texts = list(map(str.strip, fresh))
        if not self._are_plain(texts):
            plain = [self._are_plain([text]) for text in texts]
            odd = [one for one, is_plain in zip(fresh, plain, strict=True) if not is_plain]
            self.update(zip(odd, repeat(_TO_READ)))
            self._to_read.update(odd)
            fresh, texts = list(compress(fresh, plain)), list(compress(texts, plain))
        forms = _normal_forms(texts)
        folded = forms if self._fold is None else map(self._fold, forms)
        several = zip(folded, repeat(self._fold is None), self._search_modes(forms), strict=False)
        keys: list[Key] = list(map(_as_key, several))
        known = self._keys
        new = [key for key in keys if key not in known] if known else keys
        known.update(zip(dict.fromkeys(new), count(len(known)), strict=False))
        self.update(zip(fresh, map(known.__getitem__, keys), strict=True))

    def _are_plain(self, texts: Sequence[str]) -> bool:
        """True if every one of these keys is a plain word or phrase.

        A plain key is not empty or too long, has no macro, and is not read as a regular expression.
        `take_in` numbers plain keys together. All other keys are read one by one.
        """
        together = "\n".join(["", *texts])
        return (
            all(texts)
            and max(map(len, texts), default=0) <= MAX_KEY
            and "{{" not in together
            and f"\n{self._odd}" not in together
        )

    def has_words_of(self, entry: LoreEntry) -> bool:
        """True if `take_in` has numbered all keys of an entry, as they are words or phrases."""
        return not self._to_read or self._to_read.isdisjoint((*entry.keys, *entry.secondary_keys))


def _normal_forms(texts: list[str]) -> list[str]:
    """Return the normal form of each key. For speed, all keys are normalised as one joined text."""
    together = "\n".join(texts)
    if "_" not in together and together.isascii():
        return texts
    forms = normal_form(together).split("\n")
    if len(forms) != len(texts):  # a key contains a line break, so normalise one by one
        forms = list(map(normal_form, texts))
    return list(map(str.strip, forms))


def _hidden_keys(entry: LoreEntry) -> str:
    template = entry.template
    has_macros = "{{" in template.source
    return "".join(f"\n{key}" for key in template.hidden_keys) if has_macros else ""


class KeyReader:
    """Reads the keys of a book and gives each key its number. Equal keys share a number."""

    def __init__(self, rules: ActivationRules, *, filled: Mapping[str, FilledKey]) -> None:
        self.patterns: dict[int, Pattern] = {}
        self._rules = rules
        self._flags = PRESET_FLAGS[rules.rules]
        self.fold = str.lower if self._flags.ascii_words else str.casefold
        self._filled = filled
        self._numbers: dict[Key | str, int] = {}
        self._refusals: dict[tuple[str, bool], str] = {}
        self.numbers: dict[tuple[bool | None, bool | None, Patterns], _Numbers] = {}
        """The numbers of keys, by the flags that decide how the keys of an entry are searched."""

    def keys(self) -> Iterator[tuple[int, Key]]:
        """Yield the number and the key for each key that is a word or a phrase."""
        for key, number in self._numbers.items():
            if isinstance(key, Key):
                yield number, key

    def book_keys(self, entries: Sequence[LoreEntry]) -> BookKeys:
        """Return the keys of all entries of a lorebook. All plain words are numbered together."""
        alike: defaultdict[object, list[int]] = defaultdict(list)
        others: list[int] = []
        for at, entry in enumerate(entries):
            if entry.gates is NO_GATES and entry.grouping is NO_GROUPS and entry.is_usable:
                alike[entry.case_sensitive, entry.match_whole_words, entry.patterns].append(at)
            else:
                others.append(at)
        plain: list[int] = []
        numbers: list[int] = []
        owners: list[int] = []
        for same in alike.values():
            known = self._numbers_like(entries[same[0]])
            known.take_in(chain.from_iterable([entries[at].keys for at in same]))
            known.take_in(chain.from_iterable([entries[at].secondary_keys for at in same]))
            words = [at for at in same if known.has_words_of(entries[at])]
            if len(words) < len(same):
                others += {*same}.difference(words)
            keys = [entries[at].keys for at in words]
            numbers += map(known.__getitem__, chain.from_iterable(keys))
            owners += chain.from_iterable(map(repeat, words, map(len, keys)))
            plain += words
        made = {at: self.entry_keys(entries[at]) for at in others}
        for at, one in made.items():
            numbers += one.primary
            owners += repeat(at, len(one.primary))
        return BookKeys(made, group_items(numbers, owners), plain)

    def entry_keys(self, entry: LoreEntry) -> EntryKeys:
        """Return the keys of an entry. There are none if the entry can never be active."""
        if not entry.is_usable:
            return _NO_KEYS
        written, second = entry.keys, entry.secondary_keys
        number = self._numbers_like(entry).__getitem__
        primary, secondary = tuple(map(number, written)), tuple(map(number, second))
        is_plain = entry.gates is NO_GATES and not entry.grouping.names
        if not is_plain or _TO_READ in primary or _TO_READ in secondary:
            return self._read_entry(entry)
        return EntryKeys(
            primary=primary,
            texts=tuple(map(str.strip, written)),
            secondary=secondary,
            secondary_texts=tuple(map(str.strip, second)) if second else (),
            keys_decide=bool(primary) and keys_decide(entry),
            hidden=_hidden_keys(entry),
        )

    def _numbers_like(self, entry: LoreEntry) -> _Numbers:
        """Return the numbers of keys that entries with the same flags as this entry share."""
        return self.numbers_of(entry.case_sensitive, entry.match_whole_words, entry.patterns)

    def numbers_of(
        self, case_sensitive: bool | None, whole: bool | None, patterns: Patterns
    ) -> _Numbers:
        """Return the numbers of the keys of entries with these flags."""
        flags = (case_sensitive, whole, patterns)
        numbers = self.numbers.get(flags)
        if numbers is None:
            read_as = "by_form" if self._flags.patterns_by_form else patterns
            is_sensitive = self._is_sensitive(case_sensitive)
            numbers = self.numbers[flags] = _Numbers(
                self._numbers,
                hows=partial(self._search_modes, whole=self._is_whole(whole)),
                fold=None if is_sensitive else self.fold,
                odd={"all": "", "by_form": "/", "none": "{{"}[read_as],
            )
        return numbers

    def _read_entry(self, entry: LoreEntry) -> EntryKeys:
        """Return the keys of an entry that has regular expressions, macros, gates or groups."""
        refused: list[str] = []
        keys = self._number_keys(entry, entry.keys, refused)
        secondary = self._number_keys(entry, entry.secondary_keys, refused)
        barred = bool(refused) and self._patterns_of(entry) == "all"
        return EntryKeys(
            primary=() if barred else tuple(number for _, number in keys),
            texts=tuple(text for text, _ in keys),
            secondary=tuple(number for _, number in secondary),
            secondary_texts=tuple(text for text, _ in secondary),
            additional=tuple(
                tuple(number for _, number in self._number_keys(entry, line, refused))
                for line in entry.gates.additional
            ),
            excluded=tuple(n for _, n in self._number_keys(entry, entry.gates.excluded, refused)),
            refused="; ".join(refused[:_SHOWN_REFUSALS]),
            scored=self._score_keys(entry, entry.keys, keys),
            scored_secondary=self._score_keys(entry, entry.secondary_keys, secondary),
            patterns=tuple(
                self.patterns[number]
                for _, number in [*keys, *secondary]
                if number in self.patterns
            ),
            barred=barred,
            keys_decide=bool(keys) and not barred and keys_decide(entry),
            hidden=_hidden_keys(entry),
        )

    def _patterns_of(self, entry: LoreEntry) -> Patterns:
        return "by_form" if self._flags.patterns_by_form else entry.patterns

    def _number_keys(
        self, entry: LoreEntry, written: Iterable[str], refused: list[str]
    ) -> list[tuple[str, int]]:
        """Return text and number of each key, without blank keys if the rules ignore them."""
        numbered: list[tuple[str, int]] = []
        for raw in written:
            number = self._number_key(entry, raw, refused)
            if number is not None:
                text = self._expanded(raw).words
                numbered.append((text.strip() or text, number))
        return numbered

    def _score_keys(
        self, entry: LoreEntry, written: Iterable[str], numbered: Iterable[tuple[str, int]]
    ) -> tuple[int, ...]:
        """Return the numbers of the keys that count in an entry's score in its groups.

        SillyTavern searches for these keys as written, with the blanks around them.
        """
        if not entry.grouping.names:
            return ()
        if not self._flags.scores_as_written:
            return tuple(number for _, number in numbered)
        return tuple(self._as_written(entry, text) for text in written)

    def _as_written(self, entry: LoreEntry, text: str) -> int:
        if not text:
            return ALWAYS
        if text == text.strip() and "{{" not in text:
            number = self._number_key(entry, text, [])
            return NEVER if number is None else number
        sensitive, form = self._is_sensitive(entry.case_sensitive), normal_form(text)
        key = Key(form if sensitive else self.fold(form), sensitive, "part")
        return self._numbers.setdefault(key, len(self._numbers))

    def _expanded(self, written: str) -> FilledKey:
        return self._filled.get(written) or FilledKey(written, written)

    def _number_key(self, entry: LoreEntry, written: str, refused: list[str]) -> int | None:
        text, pattern = self._expanded(written)
        stripped = text.strip()
        if not stripped:
            if not self._flags.blank_keys_match:
                return None
            return ALWAYS if text else NEVER
        if len(stripped) > MAX_KEY:
            refused.append(f"key '{stripped[:40]}...' has more than {MAX_KEY} characters")
            return NEVER
        patterns = self._patterns_of(entry)
        # Test the key as written, before its macros are expanded. Otherwise the name of a player
        # could turn a key into a regular expression.
        if patterns == "all" or (patterns == "by_form" and has_slashes(written.strip())):
            by_form = patterns == "by_form"
            number = self._number_pattern(pattern.strip(), by_form=by_form, refused=refused)
            if number is not None:
                return number
        return self._numbers.setdefault(self._key(entry, stripped), len(self._numbers))

    def _number_pattern(self, text: str, *, by_form: bool, refused: list[str]) -> int | None:
        """Return the index of a key that is a regular expression; None if the key is plain text."""
        if text in self._numbers:
            return self._numbers[text]
        if (text, by_form) not in self._refusals:
            read = read_pattern(text)
            if not isinstance(read, Refused):
                number = self._numbers[text] = len(self._numbers)
                self.patterns[number] = read
                return number
            self._refusals[text, by_form] = "" if by_form and read.is_broken else read.reason
        reason = self._refusals[text, by_form]
        if not reason:
            return None
        refused.append(f"pattern '{text[:40]}' {reason}")
        return NEVER

    def _key(self, entry: LoreEntry, text: str) -> Key:
        sensitive = self._is_sensitive(entry.case_sensitive)
        form = normal_form(text).strip()
        how = next(iter(self._search_modes([form], whole=self._is_whole(entry.match_whole_words))))
        return Key(form if sensitive else self.fold(form), sensitive, how)

    def _is_sensitive(self, sensitive: bool | None) -> bool:
        return self._rules.case_sensitive if sensitive is None else sensitive

    def _is_whole(self, whole: bool | None) -> bool:
        return self._rules.match_whole_words if whole is None else whole

    def _search_modes(self, texts: Sequence[str], *, whole: bool) -> Iterable[How]:
        """Return for each key how it is searched: as a whole word, or also inside words."""
        if not whole:
            return repeat("part", len(texts))
        if not self._flags.ascii_words:
            return repeat("word", len(texts))
        return ["part" if len(text.split()) > 1 else "ascii" for text in texts]
