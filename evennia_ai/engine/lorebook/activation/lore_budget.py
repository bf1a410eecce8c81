"""The lore budget: which of the candidates have room.

With tiers, constants come before matched entries, then high priority before low; entries of a book
without a grant for its budget come after all others, and those marked `@@ignore_on_max_context`
last of all. What does not fit is skipped and the next one is tried,
unless the rules say to stop. Where several people speak, nobody can spend all of it: what one of
them wakes has a share.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.activation.candidate import PLACE, Candidate, Charge
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.engine.prompt.tokens import TokenCounter

_ALL: Final[tuple[Lorebook | None, ...]] = (None,)
_TIER: Final = attrgetter("tier")
_YIELDS: Final = attrgetter("yields")
_TOKENS: Final = attrgetter("tokens")


def budget_of(rules: ActivationRules, limit_tokens: int) -> int:
    """Tokens that all lore may take of a prompt of `limit_tokens`."""
    exact = limit_tokens * rules.budget_percent / 100
    is_open = PRESET_FLAGS[rules.rules].budget_is_open
    share = max(1, int(exact + 0.5)) if is_open else int(exact)
    return share if rules.budget_tokens is None else min(share, rules.budget_tokens)


class Spent(NamedTuple):
    """What the passes so far left of the budgets."""

    room: Mapping[Lorebook | None, int]
    """By book that has a budget of its own; None is the one of the rules."""
    full: frozenset[Lorebook | None] = frozenset()
    """In which of them an entry did not fit, and no other is tried."""
    overflowed: bool = False
    by_speaker: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """Tokens and number of what each woke."""
    passed_on: str = ""
    """Texts that are all that is spent, where they are counted as one."""
    passed_on_tokens: int = 0
    """What they cost at most."""


class LoreBudget:
    """The budgets of one pass; entries are offered in the order of their survival.

    A book's own budget stands in place of the rules'; a book that nobody approved keeps to both.
    `is_shared` where several people speak, so that each has a share.
    """

    def __init__(
        self,
        rules: ActivationRules,
        *,
        limit_tokens: int,
        counter: TokenCounter,
        speakers: int,
        spent: Spent | None = None,
    ) -> None:
        self._rules = rules
        self._budget = budget_of(rules, limit_tokens)
        self._before = spent = spent or Spent({None: self._budget})
        self._overflowed = spent.overflowed
        self._room = dict(spent.room)
        self._full = set(spent.full)
        self._by_speaker = dict(spent.by_speaker)
        flags = PRESET_FLAGS[rules.rules]
        self._is_open = int(flags.budget_is_open)
        self.is_shared = speakers > 1
        self._share = int(self._budget * rules.speaker_share_percent / 100)
        self._together: CountedAsOne | None = None
        if flags.counts_what_recursed:
            self._together = CountedAsOne(
                counter, before=spent.passed_on, before_tokens=spent.passed_on_tokens
            )

    def offer(self, one: Candidate, *, speaker: str | None = None) -> Charge | str:
        """What admitting the entry that `speaker` woke costs, or why it is not admitted."""
        purses = _ALL if one.book.token_budget is None else self._purses(one)
        ignores = one.entry.ignore_budget and _ignores(one)
        if not ignores:
            if self._full and self.is_closed_to(one):
                return "over the lore budget: an entry before it did not fit"
            if self.is_shared and (why := self._over_share(one, speaker)):
                return why
        cost = one.tokens if self._together is None else self._cost(one, purses, self._together)
        left = self._room[None] if purses is _ALL else min(map(self._left, purses))
        if cost > left - self._is_open and not ignores:
            if self._rules.overflow == "stop":
                self._full.update(purses)
                self._overflowed = True
            return f"over the lore budget: needs {cost} tokens, {max(left, 0)} were left"
        self._charge(one, purses, cost, speaker)
        return left, left - cost

    def offer_in_a_row(self, candidates: Sequence[Candidate]) -> list[Charge]:
        """What the first of the candidates cost, up to one of whom `offer` has to ask more.

        Where there is one budget, nobody has a share of it and room is left, that is nearly all.
        """
        charges: list[Charge] = []
        if self._full or self.is_shared:
            return charges
        left, together = self._room[None], self._together
        between = 0 if together is None else together.at_most(0)
        for one in candidates:
            after = left - one.tokens - between
            if after < self._is_open or not one.is_steady or one.book.token_budget is not None:
                break
            charges.append((left, after))
            left = after
        if together is not None:
            texts = [one.text for one in candidates[: len(charges)]]
            together.add(texts, tokens=self._room[None] - left)
        self._room[None] = left
        return charges

    @property
    def spent(self) -> Spent:
        """What is left."""
        return self._before._replace(
            room=self._room,
            full=frozenset(self._full),
            overflowed=self._overflowed,
            by_speaker=self._by_speaker,
        )

    def after(self, passed_on: Sequence[Candidate]) -> Spent:
        """What is left for the next pass; some presets count only what was passed on as spent."""
        together = self._together
        if together is None:
            return self.spent
        before, tokens = self._before.passed_on, self._before.passed_on_tokens
        tokens += sum(map(_TOKENS, passed_on)) + together.at_most(0) * (len(passed_on) + 1)
        return self.spent._replace(
            room={**self._room, None: self._budget - tokens},
            full=frozenset(),
            passed_on="\n".join([*[one.text for one in passed_on], before]),
            passed_on_tokens=tokens,
        )

    def is_closed_to(self, one: Candidate) -> bool:
        """Whether an entry before it did not fit, and no other is tried."""
        full = self._full
        return bool(full) and not _ignores(one) and not full.isdisjoint(self._purses(one))

    def _purses(self, one: Candidate) -> tuple[Lorebook | None, ...]:
        """The budgets of an entry; None is the one of the rules, which a grant replaces."""
        book = one.book
        if book.token_budget is None:
            return _ALL
        return (book,) if "lore_budget" in book.grants else (book, None)

    def _left(self, purse: Lorebook | None) -> int:
        if purse is not None:
            self._room.setdefault(purse, purse.token_budget or 0)
        return self._room[purse]

    def _cost(
        self, one: Candidate, purses: tuple[Lorebook | None, ...], together: "CountedAsOne"
    ) -> int:
        """What an entry costs beside the others: exactly where it may fit and may not."""
        at_most = together.at_most(one.tokens)
        if at_most <= min(map(self._left, purses)) - self._is_open:
            return at_most
        self._room[None] += together.count()
        room = min(map(self._left, purses)) - self._is_open
        surely_too_much = together.at_least(one.tokens) > room and not _ignores(one)
        return one.tokens if surely_too_much else together.cost(one.text)

    def _charge(
        self, one: Candidate, purses: Iterable[Lorebook | None], cost: int, speaker: str | None
    ) -> None:
        for purse in purses:
            self._room[purse] -= cost
        if self._together is not None:
            self._together.add([one.text], tokens=cost)
        if self.is_shared and speaker is not None and not one.entry.constant:
            tokens, woken = self._by_speaker.get(speaker, (0, 0))
            self._by_speaker[speaker] = tokens + cost, woken + 1

    def _over_share(self, one: Candidate, speaker: str | None) -> str:
        """Why an entry has no room among those that its speaker woke, "" where it has."""
        if speaker is None or one.entry.constant:
            return ""
        rules, shown = self._rules, speaker or "somebody"
        tokens, woken = self._by_speaker.get(speaker, (0, 0))
        if rules.speaker_matches and woken >= rules.speaker_matches:
            return f"over the share of {shown}, who woke {rules.speaker_matches} entries already"
        left = max(self._share - tokens, 0)
        if rules.speaker_share_percent < 100 and one.tokens > left:
            return f"over {shown}'s share of the lore budget: {one.tokens} tokens, {left} were left"
        return ""


def in_processing_order(
    candidates: Iterable[Candidate], rules: ActivationRules
) -> Sequence[Candidate]:
    """The entries of a pass, who is asked first before the others."""
    placed = sorted(candidates, key=PLACE)
    return placed if PRESET_FLAGS[rules.rules].tiers else by_survival(placed)


def by_survival(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Entries in processing order, sorted by who is offered room first; equal ones stay so.

    Sorted by one number and then by another, which is far quicker than by tuples of both.
    """
    return sorted(sorted(candidates, key=_YIELDS), key=_TIER)


def survival(
    entry: LoreEntry, *, vouched: bool, sticky: bool, rules: ActivationRules
) -> tuple[int, float]:
    """The tier of an entry, and where it yields in it; `vouched` where its book has the grant."""
    if PRESET_FLAGS[rules.rules].tiers:
        tier = 4 * entry.first_to_go + 2 * (not vouched) + (not entry.constant)
        return tier, -entry.priority
    return int(not sticky), 0.0


def _ignores(one: Candidate) -> bool:
    """Whether the budget does not count for an entry: its book needs the grant for that."""
    return one.entry.ignore_budget and "lore_budget" in one.book.grants


class CountedAsOne:
    """The texts that a pass admits, counted together (preset `sillytavern`).

    SillyTavern counts all texts of a pass together, again for each new one (`checkWorldInfo` in its
    world-info.js); that is quadratic work. A text together with others costs at most one separator
    more or less than by itself. So texts are only counted together where that decides who has room.

    `before` are the texts that were passed on to this pass. `tokens` is the cost of all texts:
    exact after `count`, else an upper bound.
    """

    __slots__ = (
        "_before",
        "_before_tokens",
        "_counted_with",
        "_counter",
        "_is_counted",
        "_texts",
        "tokens",
    )

    def __init__(self, counter: TokenCounter, *, before: str, before_tokens: int) -> None:
        self._counter = counter
        self._before, self._before_tokens = before, before_tokens
        self._texts: list[str] = []
        self._is_counted = not before
        self._counted_with: str | None = None
        self.tokens = before_tokens

    def at_most(self, tokens: int) -> int:
        """Return the most tokens that a text adds."""
        return tokens + self._counter.per_separator

    def at_least(self, tokens: int) -> int:
        """Return the fewest tokens that a text adds."""
        return tokens - self._counter.per_separator

    def add(self, texts: Iterable[str], *, tokens: int) -> None:
        """Admit texts that add at most this many tokens."""
        was_counted, self._counted_with = self._counted_with, None
        added = [*texts]
        self._is_counted = self._is_counted and added == [was_counted]
        self._texts += added
        self.tokens += tokens

    def count(self) -> int:
        """Count the texts exactly; return by how much the cost shrinks."""
        at_most = self.tokens
        if not self._is_counted:
            self._before_tokens = self._counter.count(self._before) if self._before else 0
            self.tokens = self._counted()
            self._is_counted = True
        return at_most - self.tokens

    def cost(self, text: str) -> int:
        """Return exactly how much a text adds. Call `count` before."""
        self._counted_with = text
        return self._counted(text) - self.tokens

    def _counted(self, *more: str) -> int:
        texts = "".join([f"{text}\n" for text in (*self._texts, *more)])
        return self._before_tokens + self._counter.count(texts)
