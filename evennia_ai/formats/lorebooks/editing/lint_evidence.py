"""Gather facts about the keys of a lorebook from the book's own texts, for its lints.

Each text is searched once, with the key index of the engine. In a book with very many regular
expressions only a sample of the texts is searched. Lints that need all texts then report nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.activation.lore_budget import budget_of
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import BookIndex, KeysOfEntries, book_index_of
from evennia_ai.engine.lorebook.scan.matching import prepare_text
from evennia_ai.engine.lorebook.scan.regex.pattern import Refused, has_slashes, read_pattern
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.text.normal_form import normal_form
from evennia_ai.engine.text.words import split_words

NO_DICE: Final = Dice(turn="", conversation="")
_MOST_SEARCHES: Final = 300_000
_WITHOUT_END: Final = 1_000_000
# Each row is a number of other entries and a share. The first row whose number a book reaches
# applies to the book. A key is too common if at least this share of the other entries contains it.
_SPREADS: Final = ((20, 0.2), (4, 0.5), (2, 1))
_FREQUENT_SHARE: Final = 0.03
_FREQUENT_TIMES: Final = 4
_FEWEST_WORDS: Final = 40


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The facts about a book that its lints use."""

    book: Lorebook
    rules: ActivationRules
    budget: int | None
    """The token budget of the book's lore; None if only the size of a prompt limits it."""
    tokens: Sequence[int]
    """The number of tokens of each entry's text, by index of the entry."""
    key_index: BookIndex

    @property
    def entry_keys(self) -> KeysOfEntries:
        """The keys of each entry by index, in the form in which the engine searches for them."""
        return self.key_index.entry_keys

    @property
    def scan_depth(self) -> int:
        """The scan depth of entries that have none of their own."""
        own = self.book.scan_depth
        return self.rules.scan_depth if own is None else own

    @property
    def recurses(self) -> bool:
        """True if recursion is on, so the texts of active entries are searched for keys."""
        own = self.book.recursive
        return self.rules.recursive if own is None else own

    @property
    def is_blind(self) -> bool:
        """True if an entry with scan depth 0 ignores the texts of active entries too.

        If False, such texts can activate the entry.
        """
        return self.rules.flags.depth_0_is_blind

    @cached_property
    def levels(self) -> list[int]:
        """The recursion delay levels that occur in the book, ascending."""
        return sorted({e.recursion.delay_level for e in self._enabled} - {0})

    @property
    def walks_levels(self) -> bool:
        """True if recursion reaches the delay levels even if no entry triggers recursion."""
        return self.rules.flags.levels_are_walked and len(self.levels) > 1

    def rank(self, level: int) -> int:
        """Return the number of lower delay levels that occur in the book."""
        return self.levels.index(level)

    @property
    def reached_levels(self) -> int:
        """The number of delay levels that recursion can reach at most."""
        limit = self.rules.max_recursion_steps
        if not limit:
            return _WITHOUT_END
        counts_first = self.rules.flags.first_pass_counts and self.recurses
        return limit - 1 if counts_first else limit

    @cached_property
    def members(self) -> Counter[str]:
        """The number of entries in each inclusion group."""
        return Counter(
            name for entry in self._enabled for name in dict.fromkeys(entry.grouping.names)
        )

    def passes_on(self, index: int) -> bool:
        """True if recursion searches the text of at least one entry other than this one."""
        return any(other != index for other in self._feeders)

    def is_unfed(self, index: int) -> bool:
        """True if no text that recursion searches contains a key of this entry.

        It is False if that is unknown.
        """
        numbers = self.entry_keys[index].primary
        if not self._found.is_whole or any(n < 0 or n in self.key_index.patterns for n in numbers):
            return False
        return not any(self._found.fed_by.get(number, set()) - {index} for number in numbers)

    def spread(self, number: int, index: int) -> tuple[int, int] | None:
        """Return in how many texts of entries a key occurs, or None if it is not common.

        The result has two numbers: the other entries whose text contains the key, and all other
        entries. `number` identifies the key, `index` its entry.
        """
        own = number in self._found.own.get(index, ())
        there, others = self._found.texts[number] - own, self._found.searched - 1
        for fewest, share in _SPREADS:
            if others >= fewest:
                return (there, others) if there >= share * others else None
        return None

    def is_frequent(self, text: str) -> bool:
        """True if a key is a single word and among the most frequent words of the book's texts."""
        times = self._words[normal_form(text).casefold()]
        enough = times >= _FREQUENT_TIMES and self._running_words >= _FEWEST_WORDS
        return enough and times >= _FREQUENT_SHARE * self._running_words

    def refusals(self, entry: LoreEntry) -> list[str]:
        """Return a sentence for each key of an entry that is an invalid regular expression."""
        by_form = self.rules.flags.patterns_by_form or entry.patterns == "by_form"
        if not by_form and entry.patterns == "none":
            return []
        listed = (key.strip() for keys in entry.key_lists for key in keys)
        written = dict.fromkeys(filter(None, listed))
        meant = [key for key in written if not by_form or has_slashes(key)]
        found = ((key, self._refusal(key)) for key in meant)
        return [_refused(key, why, by_form=by_form) for key, why in found if why is not None]

    @cached_property
    def _enabled(self) -> list[LoreEntry]:
        return [entry for entry in self.book.entries if entry.is_usable]

    @cached_property
    def _feeders(self) -> list[int]:
        """The indices of the first two entries whose texts are searched during recursion.

        Two are enough to know for any entry whether another one exists.
        """
        passing = (
            entry.index
            for entry in self._enabled
            if not entry.recursion.prevented and entry.template.source.strip()
        )
        return [index for _, index in zip(range(2), passing, strict=False)]

    @cached_property
    def _words(self) -> Counter[str]:
        """The number of occurrences of each word in the texts of all entries."""
        words: Counter[str] = Counter()
        for entry in self._enabled:
            words.update(split_words(normal_form(entry.template.source).casefold()))
        return words

    @cached_property
    def _running_words(self) -> int:
        """The total number of words in the texts of all entries."""
        return self._words.total()

    @cached_property
    def _found(self) -> "_KeyHits":
        patterns = sum(
            entry.patterns == "all" or has_slashes(key.strip())
            for entry in self._enabled
            if entry.patterns != "none"
            for key in entry.keys
        )
        step = 1 + patterns * len(self._enabled) // _MOST_SEARCHES
        found = _KeyHits(is_whole=step == 1)
        for entry in self._enabled[::step]:
            found.add(entry, self.key_index)
        return found

    @cached_property
    def _known_refusals(self) -> dict[str, Refused | None]:
        return {}

    def _refusal(self, key: str) -> Refused | None:
        if key not in self._known_refusals:
            read = read_pattern(key)
            self._known_refusals[key] = read if isinstance(read, Refused) else None
        return self._known_refusals[key]


def gather_evidence(
    book: Lorebook,
    *,
    rules: ActivationRules,
    limit_tokens: int | None,
    counter: TokenCounter,
) -> Evidence:
    """Gather the facts about a book that its lints use.

    Args:
        limit_tokens: the size of a prompt, None if unknown.
    """
    budget = rules.budget_tokens if limit_tokens is None else budget_of(rules, limit_tokens)
    return Evidence(
        book=book,
        rules=rules,
        budget=budget if book.token_budget is None else book.token_budget,
        tokens=[counter.count(entry.template.source) for entry in book.entries],
        key_index=book_index_of(book, rules=rules, values={}, dice=NO_DICE),
    )


@dataclass(kw_only=True)
class _KeyHits:
    """The matches of a book's keys in the texts of its entries, as far as lints need them.

    A key is identified by its number in the key index, an entry by its index in the book.
    """

    is_whole: bool
    """True if the texts of all entries were searched, False if only a sample was searched."""
    searched: int = 0
    texts: Counter[int] = field(default_factory=Counter)
    """Maps a key to the number of texts that contain it."""
    own: dict[int, frozenset[int]] = field(default_factory=dict)
    """Maps an entry to those of its keys that its own text contains."""
    fed_by: dict[int, set[int]] = field(default_factory=dict)
    """Maps a key to at most two entries whose text contains it and is searched during recursion."""

    def add(self, entry: LoreEntry, key_index: BookIndex) -> None:
        """Search the text of an entry for all keys of the book, and record the matches."""
        hits = key_index.table.hits(prepare_text(entry.template.source, fold=key_index.table.fold))
        self.searched += 1
        self.texts.update(hits.keys())
        if own := hits.keys() & key_index.entry_keys[entry.index].primary:
            self.own[entry.index] = frozenset(own)
        for number in () if entry.recursion.prevented else hits:
            fed_by = self.fed_by.setdefault(number, set())
            if len(fed_by) < 2:
                fed_by.add(entry.index)


def _refused(key: str, why: Refused, *, by_form: bool) -> str:
    shown = f"key '{one_line(key)[:60]}'"
    if by_form and why.is_broken:
        return f"{shown} {why.reason}; it is searched as plain text: fix it"
    return f"{shown} {why.reason}; it is never found: write it in another way"
