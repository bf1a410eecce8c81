"""The books that activation reads in one turn, in reading order, and what is cached about them.

An `ActiveBook` exists for one run of activation. Results that later turns can reuse are cached
elsewhere. The expanded texts and the labels of entries are cached in the book, for all NPCs. The
candidates and the found keys are cached for each book and conversation.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.lorebook.activation.candidate import (
    CANDIDATES,
    JUDGED,
    PLACE,
    Candidate,
    Judgement,
    Ruling,
)
from evennia_ai.engine.lorebook.activation.judging import PassView, judge_entry
from evennia_ai.engine.lorebook.activation.lore_budget import survival_rank
from evennia_ai.engine.lorebook.activation.timers import Timers, is_remembered
from evennia_ai.engine.lorebook.book import (
    ATTACH_RANK,
    IDENTITIES,
    LABELS,
    Lorebook,
    identities_of,
    index_of,
    labels_of,
    missing_grants,
)
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.engine.lorebook.scan.hit_cache import FoundKey
from evennia_ai.engine.lorebook.scan.key_index import BookIndex, EntryKeys, book_index_of
from evennia_ai.engine.lorebook.scan.regex.pattern import TURN_STEPS
from evennia_ai.engine.lorebook.scan.window import Scan, Window
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.templates.template import Template
from evennia_ai.engine.prompt.templates.work import COUNTED_A_UNIT, Meter, OutOfWorkError
from evennia_ai.engine.prompt.tokens import TokenCounter

# A number greater than the count of entries in any book. The number of an entry is the rank of its
# book times this constant, plus its index, so entries of different books have different numbers.
_MOST_ENTRIES: Final = 10**9


class _EntryText(NamedTuple):
    """The text of an entry with its macros expanded, its tokens, and the work of expanding it."""

    made_with: object
    """The macro values and the token counter of the text. If they change, the text is outdated."""
    text: str
    tokens: int
    work: int


# The texts of a book's entries with their macros expanded, by index of the entry.
_TEXTS: Final = Slot[dict[int, _EntryText]]("texts")


class ActiveBook:
    """One lorebook during the activation of one turn, with the decisions on its entries.

    `rank` is the position of the book in reading order. `sort_key` sorts its entries among those of
    other books. `marked` has the indexes of the entries that the next pass judges. `judgements`
    says by index whether an entry meets its conditions, and `rulings` whether it becomes active.
    Rulings on entries in `final` never change.
    """

    def __init__(
        self,
        book: Lorebook,
        *,
        rank: int,
        sort_key: tuple[int, int],
        key_index: BookIndex,
        scan: Scan,
        rules: ActivationRules,
        values: Mapping[str, str],
        dice: Dice,
        counter: TokenCounter,
        timers: Timers,
        meter: Meter,
        steps: int,
    ) -> None:
        self.lorebook = book
        self.entries = book.entries
        self.rank = rank
        self.key_index = key_index
        self.rules = rules
        self.window = Window(
            scan,
            key_index,
            of=(book.label, book.attach, rules.strategy),
            include_names=rules.include_names,
            steps=steps,
        )
        self.depth = rules.scan_depth if book.scan_depth is None else book.scan_depth
        self.depth_in_pass = self.depth
        """The scan depth of the last pass, larger than `depth` if the scan was widened."""
        self.recursive = rules.recursive if book.recursive is None else book.recursive
        self.labels = book.memo.get(LABELS) or labels_of(book)
        self.identities = book.memo.get(IDENTITIES) or identities_of(book)
        self.judged = self.window.memo.setdefault(JUDGED, {})
        self.marked: set[int] = set()
        self.final: set[int] = set()
        self.judgements: dict[int, Judgement] = {}
        self.rulings: dict[int, Ruling] = {}
        self._sort_key = sort_key
        self._values = values
        self._dice = dice
        self._counter = counter
        self._timers = timers
        self._meter = meter
        self._candidates = self.window.memo.setdefault(CANDIDATES, {})
        self._matches: KeyMatches | None = None
        self._paid: dict[int, int] = {}
        """The work already charged in this run for the text of each entry, by index."""

    def mark(self, indexes: Iterable[int]) -> None:
        """Mark the entries with these indexes, so that the next activation pass judges them."""
        self.marked.update(indexes)

    def mark_owners(self, keys: Iterable[int]) -> None:
        """Mark the entries that one of these keys may activate. The next pass judges them."""
        owners = self.key_index.owners
        for key in keys:
            self.marked.update(owners.get(key, ()))

    def mark_identities(self, identities: Iterable[str]) -> None:
        """Mark the entries of this book that have one of these identities."""
        for identity in identities:
            index = index_of(self.lorebook, identity)
            if index is not None:
                self.marked.add(index)

    def judge(self, index: int, view: PassView) -> Judgement:
        """Decide whether the entry with this index meets its conditions and has a found key."""
        keys = self.key_index.entry_keys[index]
        return judge_entry(self.entries[index], keys, view, identity=self.identities[index])

    def report(self, index: int, judgement: Judgement) -> None:
        """Store why an entry is not a candidate, and delete its ruling from an earlier pass."""
        self.judgements[index] = judgement
        self.rulings.pop(index, None)

    # Candidates: entries whose conditions are met, with their expanded texts

    def candidate(self, index: int, judgement: Judgement) -> Candidate | None:
        """Return the entry as a candidate; None if the rules refuse an entry with an empty text.

        Raises:
            OutOfWorkError: Expanding the entry's macros needs more work than the turn has left.
        """
        sticky, counter = judgement.sticky, self._counter
        known = self._candidates.get(index)
        if known is not None and not known.is_for(
            self.lorebook, rank=self.rank, counter=counter, sticky=sticky
        ):
            known = None
        if known is not None and known.is_constant_text and not known.work:
            return known
        text, tokens, work = self._text(index)
        if not text.strip() and not self.rules.flags.empty_is_active:
            return None
        if known is not None and known.text == text:
            return known
        entry, book = self.entries[index], self.lorebook
        first, among_equals = self._sort_key
        order = -entry.order if self.rules.flags.high_order_first else entry.order
        tier, yields = survival_rank(
            entry, vouched="lore_budget" in book.grants, sticky=sticky, rules=self.rules
        )
        made = self._candidates[index] = Candidate(
            number=self.rank * _MOST_ENTRIES + index,
            place=(first, order, among_equals, self.rank, index),
            tier=tier,
            yields=yields,
            rank=self.rank,
            book=book,
            entry=entry,
            label=self.labels[index],
            identity=self.identities[index],
            sticky=sticky,
            rests=self.identities[index] in self._timers.resting,
            text=text,
            searched=text + self.key_index.entry_keys[index].hidden,
            tokens=tokens,
            work=work,
            counter=counter,
            lacking=() if book.grants == ALL_GRANTS else missing_grants(entry, book.grants),
            # A later turn may use this candidate again, unless the entry has a cooldown: `rests`
            # above changes when a cooldown starts or ends.
            is_lasting=not entry.timing.cooldown,
            is_constant_text=not (entry.template.names or entry.template.rolls),
            is_steady=entry.chance >= 100 and not entry.grouping.names,
            is_remembered=is_remembered(entry),
        )
        return made

    def _text(self, index: int) -> tuple[str, int, int]:
        """Return an entry's expanded text, its tokens, and the work of expanding its macros.

        The text is cached in the book and reused while its macros read equal values. A cached text
        costs the turn as much work as a new one. So every process leaves out the same texts when a
        turn has used its limit of work. What a process has cached makes no difference.
        """
        template, meter, counter = self.entries[index].template, self._meter, self._counter
        made_with: object = counter
        if template.names or template.rolls:
            read = [self._values.get(name) for name in template.names]
            made_with = (read, template.rolls and self._dice, counter)
        texts = self.lorebook.memo.setdefault(_TEXTS, {})
        known = texts.get(index)
        if known is None or known.made_with != made_with:
            left = meter.left
            try:
                text = self._fill_in(template)
            except OutOfWorkError:
                # As in `Meter.pay_whole`: an expansion that was refused at once costs nothing. An
                # expansion that stopped halfway uses up all the remaining work.
                meter.left = left if meter.left == left else 0
                raise
            known = _EntryText(made_with, text, counter.count(text), left - meter.left)
            texts[index] = known
        elif known.work and index not in self._paid:
            meter.pay_whole(known.work, at_least=template.work)
        if known.work:
            self._paid[index] = known.work
        return known.text, known.tokens, known.work

    def _fill_in(self, template: Template) -> str:
        if not template.reads:
            return template.source
        try:
            text = template.render(self._values, self._dice, meter=self._meter)
        except OutOfWorkError:
            raise
        except TemplateError:  # the expanded text would be too long, so use it as written
            text = template.source
        self._meter.pay(len(text) // COUNTED_A_UNIT)
        return text

    # Reuse of the entries whose keys were found in earlier turns ("matches")

    def use_matches(self, made_for: object) -> None:
        """Reuse the matches (entries with found keys) of earlier turns if inputs are equal."""
        known = self.window.memo.get(_MATCHES)
        if (
            known is None
            or known.made_for != made_for
            or any(self._values.get(name) != value for name, value in known.values.items())
        ):
            known = self.window.memo[_MATCHES] = KeyMatches(made_for)
        self._matches = known

    def drop_matches(self) -> None:
        """Ignore the cached matches in this turn, and mark every entry that has a found key."""
        self._matches = None
        self.mark_owners(self.window.found_keys())
        self.mark_owners(self.window.fed)

    def forget_matches(self) -> None:
        """Delete the cached matches (entries with found keys) of this conversation."""
        self.window.memo.pop(_MATCHES, None)

    def update_matches(
        self, number: int, view: PassView, *, most_judged: int
    ) -> "PassMatches | None":
        """Update and return the matches (entries with found keys) of one activation pass.

        Only entries with a key whose place has changed are judged. Matched entries that depend on
        more than keys are marked, so that the caller judges them. Returns None if the matches
        cannot be cached. Then the caller must also mark the entries whose keys are in texts of
        other entries.
        """
        if self._matches is None:
            return None
        passes, owners = self._matches.passes, self.key_index.owners
        if number > min(_MOST_PASSES_KEPT, len(passes) + 1):
            self.drop_matches()
            return None
        if number > len(passes):
            passes.append(PassMatches())
        matches, window = passes[number - 1], self.window
        for key in matches.moved_keys(window) if number == 1 else matches.moved_keys_in_fed(window):
            matches.stale.update(owners.get(key, ()))
        while matches.stale:
            self._update_match(matches.stale.pop(), number, view)
        if kept := matches.works:  # a cached text costs the turn as much work as a new one
            unpaid = kept.keys() - self._paid.keys() if self._paid else kept
            self._meter.pay(sum(map(kept.__getitem__, unpaid)))
            self._paid.update(kept)
        matches.sort_newcomers()
        marked = self.marked | (matches.others - self.final)
        if len(matches.judgements) + len(marked) > most_judged:
            self.drop_matches()
            return None
        self.marked = marked
        self.judgements.update(matches.judgements)
        return matches

    def _update_match(self, index: int, number: int, view: PassView) -> None:
        """Judge an entry again because the place of one of its keys has changed.

        If the entry joins or leaves the matches of this pass, later passes must judge it again.
        """
        assert self._matches is not None
        passes = self._matches.passes
        matches = passes[number - 1]
        one = matches.candidates.get(index)
        was_there = one is not None
        entry, keys = self.entries[index], self.key_index.entry_keys[index]
        if not self._is_matched(keys.primary, index, passes[: number - 1]):
            matches.remove(index)
        elif was_there or is_decided_by_keys(entry, keys):
            judgement = self.judge(index, view)
            if judgement.is_candidate and one is None:
                one = self.candidate(index, judgement)
                read = ((name, self._values.get(name)) for name in entry.template.names)
                self._matches.values.update(read)
            matches.put(index, judgement, one)
        else:
            matches.others.add(index)
        if was_there != (index in matches.judgements):
            for later in passes[number:]:
                later.stale.add(index)

    def _is_matched(
        self, keys: Collection[int], index: int, earlier: Sequence["PassMatches"]
    ) -> bool:
        """True if one of the keys is found in this pass and no earlier pass matched the entry."""
        if not earlier:
            return self.window.has_any(keys)
        if self.window.fed.keys().isdisjoint(keys):
            return False
        return not any(index in matches.judgements for matches in earlier)


class PassMatches:
    """The entries whose keys are found in one activation pass, cached from turn to turn.

    `candidates` depend only on their keys, so the next turn can reuse them. `others` also depend,
    for example, on chance or a timer, so every turn judges them. `stale` are entries to judge
    again, because the place of one of their keys has changed. An entry belongs to the first pass
    that finds a key of it. All sets and mappings contain indexes of entries.
    """

    __slots__ = ("_has_newcomers", "candidates", "judgements", "others", "seen", "stale", "works")

    def __init__(self) -> None:
        self.judgements: dict[int, Judgement] = {}
        self.candidates: dict[int, Candidate] = {}
        self.others: set[int] = set()
        self.stale: set[int] = set()
        self.works: dict[int, int] = {}
        """The work of expanding the text, for each candidate that has macros."""
        self._has_newcomers = False
        self.seen: Mapping[int, FoundKey] | None = None
        """The keys that the previous turn found outside the messages of the history.

        None in the first turn."""

    def moved_keys(self, window: Window) -> set[int]:
        """Return the keys whose place in the conversation has changed since the previous turn."""
        newest, changed = window.newest, window.hits.changed
        moved = window.found_keys() if self.seen is None else {*changed, *newest, *self.seen}
        changed.clear()
        self.seen = newest
        return moved

    def moved_keys_in_fed(self, window: Window) -> set[int]:
        """Return the keys whose place in texts of active entries changed since the last turn."""
        before, fed = self.seen or {}, window.fed
        self.seen = fed
        return set() if before is fed else {number for number, _ in before.items() ^ fed.items()}

    def put(self, index: int, judgement: Judgement, candidate: Candidate | None) -> None:
        """Store a judged entry in `candidates` if it is a candidate, else in `others`."""
        if judgement.is_candidate and candidate is not None:
            self._has_newcomers |= index not in self.candidates
            self.judgements[index] = judgement
            self.candidates[index] = candidate
            if candidate.work:
                self.works[index] = candidate.work
            else:
                self.works.pop(index, None)
            self.others.discard(index)
        else:
            self.remove(index)
            self.others.add(index)

    def sort_newcomers(self) -> None:
        """Sort the candidates into processing order if new ones were added.

        The list is nearly sorted already, and Python sorts such lists fast.
        """
        if self._has_newcomers:
            ordered = sorted(self.candidates.values(), key=PLACE)
            self.candidates = {one.entry.index: one for one in ordered}
            self._has_newcomers = False

    def remove(self, index: int) -> None:
        """Remove an entry whose keys are no longer found."""
        self.judgements.pop(index, None)
        self.candidates.pop(index, None)
        self.works.pop(index, None)
        self.others.discard(index)


class KeyMatches:
    """The entries of one book whose keys were found, cached for one conversation.

    Activation searches for keys in several passes, and each pass has its own list of entries. In
    the next turn, an entry's result is used again if its keys are found at the same places as
    before. The whole cache is valid only while the inputs in `made_for` stay equal.
    """

    __slots__ = ("made_for", "passes", "values")

    def __init__(self, made_for: object) -> None:
        self.made_for = made_for
        self.passes: list[PassMatches] = []
        self.values: dict[str, str | None] = {}
        """The values that were filled into the texts of the candidates."""


_MATCHES: Final = Slot[KeyMatches]("key matches")
# The number of activation passes whose matches are cached. Few turns have more passes, and the
# later passes of those turns judge their entries without a cache.
_MOST_PASSES_KEPT: Final = 8


def is_decided_by_keys(entry: LoreEntry, keys: EntryKeys) -> bool:
    """True if only keys decide about an entry, searched in the same texts as for its book."""
    return (
        keys.keys_decide
        and not keys.patterns
        and min(keys.primary) >= 0
        and entry.scan_depth is None
        and not entry.sources
        and not entry.timing.sticky
        and not entry.template.rolls
    )


def order_books(books: Iterable[Lorebook], rules: ActivationRules) -> list[Lorebook]:
    """Sort books into reading order: books of the chat first, then by the strategy in the rules.

    Books that the strategy treats alike are sorted by attachment, then they keep the given order.
    """
    return sorted(books, key=lambda book: _sort_key(book, rules))


def active_books_of(
    ordered: Sequence[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    values: Mapping[str, str],
    dice: Dice,
    counter: TokenCounter,
    timers: Timers,
    meter: Meter,
) -> tuple[ActiveBook, ...]:
    """Prepare books, given in reading order, for activation in one turn.

    Books with regular expressions share the search steps of the turn equally.
    """
    indexes = [book_index_of(book, rules=rules, values=values, dice=dice) for book in ordered]
    with_patterns = sum(index.has_patterns for index in indexes)
    return tuple(
        ActiveBook(
            book,
            rank=rank,
            sort_key=_sort_key(book, rules),
            key_index=key_index,
            scan=scan,
            rules=rules,
            values=values,
            dice=dice,
            counter=counter,
            timers=timers,
            meter=meter,
            steps=TURN_STEPS // max(1, with_patterns),
        )
        for rank, (book, key_index) in enumerate(zip(ordered, indexes, strict=True))
    )


def entry_finder(books: Sequence[Lorebook]) -> Callable[[str], LoreEntry | None]:
    """Return a function that finds an entry by its identity, or returns None if no book has it."""

    def find(identity: str) -> LoreEntry | None:
        for book in books:
            index = index_of(book, identity)
            if index is not None:
                return book.entries[index]
        return None

    return find


def _sort_key(book: Lorebook, rules: ActivationRules) -> tuple[int, int]:
    """Return two numbers that sort the entries of a book among those of other books.

    The first number counts before the order of the entries, the second one after it.
    """
    rank, flags = ATTACH_RANK[book.attach], PRESET_FLAGS[rules.rules]
    leading = _LEADING[flags.player_follows_chat]
    place = _STRATEGY_RANKS[rules.strategy](rank)
    if book.attach in leading:
        place = leading.index(book.attach) - _BEFORE_ALL
    return place, rank if flags.ties_narrow_first else -rank


# The attachments whose books come first in every strategy, without and with the flag
# `player_follows_chat`.
_LEADING: Final = (("chat",), ("chat", "player"))
_BEFORE_ALL: Final = 100
# Strategies for reading several books. Each function turns the rank of a book's attachment into a
# sort number.
_STRATEGY_RANKS: Final[Mapping[str, Callable[[int], int]]] = {
    "evenly": lambda rank: 0,
    "character_first": lambda rank: rank,
    "global_first": lambda rank: -rank,
}
