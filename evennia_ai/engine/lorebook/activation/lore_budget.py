"""The lore budget: how many tokens lore may take in a prompt, and which entries fit.

In the preset `evennia_ai`, constant entries get tokens before entries with found keys, and a high
priority before a low one. Entries of a book without the grant "lore_budget" come after all others,
and entries marked `@@ignore_on_max_context` come last. If an entry does not fit, it is skipped and
the next one is tried, unless the rules say to stop. If several people speak, each of them gets a
share of the budget.
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

_RULES_ONLY: Final[tuple[Lorebook | None, ...]] = (None,)
_TIER: Final = attrgetter("tier")
_YIELDS: Final = attrgetter("yields")
_TOKENS: Final = attrgetter("tokens")


def budget_of(rules: ActivationRules, limit_tokens: int) -> int:
    """Return the maximum number of tokens that lore may take in a prompt of `limit_tokens`."""
    exact = limit_tokens * rules.budget_percent / 100
    is_open = PRESET_FLAGS[rules.rules].budget_is_open
    share = max(1, int(exact + 0.5)) if is_open else int(exact)
    return share if rules.budget_tokens is None else min(share, rules.budget_tokens)


class Spent(NamedTuple):
    """The lore budgets after some activation passes: what is left, and who used it."""

    room: Mapping[Lorebook | None, int]
    """The tokens left in each budget. The key is a book that has its own budget, or None for the
    budget of the rules."""
    full: frozenset[Lorebook | None] = frozenset()
    """The closed budgets. A budget is closed once an entry did not fit, if the rules say to stop
    then."""
    overflowed: bool = False
    """True if an entry did not fit and the rules say to stop then."""
    by_speaker: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """For each speaker: the tokens and the number of the entries that the speaker activated."""
    passed_on: str = ""
    """All texts that count as spent, joined, if the rules count several texts as one."""
    passed_on_tokens: int = 0
    """The most tokens that the text in `passed_on` can have."""


class LoreBudget:
    """The lore budgets during one activation pass. Offer candidates in the order of `by_survival`.

    A book's own budget replaces the budget of the rules. If the book lacks the grant "lore_budget",
    both budgets limit its entries. If `is_shared`, several people speak, and each of them has a
    share.
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
        """Admit an entry that `speaker` activated. Return its charge, or why it does not fit."""
        budgets = _RULES_ONLY if one.book.token_budget is None else self._budgets_of(one)
        ignores = one.entry.ignore_budget and _ignores_budget(one)
        if not ignores:
            if self._full and self.is_closed_to(one):
                return "over the lore budget: an entry before it did not fit"
            if self.is_shared and (why := self._over_share(one, speaker)):
                return why
        cost = one.tokens if self._together is None else self._cost(one, budgets, self._together)
        left = self._room[None] if budgets is _RULES_ONLY else min(map(self._left, budgets))
        if cost > left - self._is_open and not ignores:
            if self._rules.overflow == "stop":
                self._full.update(budgets)
                self._overflowed = True
            return f"over the lore budget: needs {cost} tokens, {max(left, 0)} were left"
        self._charge(one, budgets, cost, speaker)
        return left, left - cost

    def offer_in_a_row(self, candidates: Sequence[Candidate]) -> list[Charge]:
        """Admit the first candidates that surely fit, and return their charges.

        This stops at the first candidate that needs the exact checks of `offer`, for example
        because it has a budget of its own, or because few tokens are left.
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
        """The state of the lore budgets after this pass."""
        return self._before._replace(
            room=self._room,
            full=frozenset(self._full),
            overflowed=self._overflowed,
            by_speaker=self._by_speaker,
        )

    def after(self, passed_on: Sequence[Candidate]) -> Spent:
        """Return the state of the lore budgets for the next activation pass.

        In SillyTavern, only the texts that recursion searches next (`passed_on`) count as spent. A
        closed budget stays closed.
        """
        together = self._together
        if together is None:
            return self.spent
        before, tokens = self._before.passed_on, self._before.passed_on_tokens
        tokens += sum(map(_TOKENS, passed_on)) + together.at_most(0) * (len(passed_on) + 1)
        return self.spent._replace(
            room={**self._room, None: self._budget - tokens},
            passed_on="\n".join([*[one.text for one in passed_on], before]),
            passed_on_tokens=tokens,
        )

    def is_closed_to(self, one: Candidate) -> bool:
        """True if a budget of this entry is closed, because an earlier entry did not fit."""
        full = self._full
        return (
            bool(full) and not _ignores_budget(one) and not full.isdisjoint(self._budgets_of(one))
        )

    def _budgets_of(self, one: Candidate) -> tuple[Lorebook | None, ...]:
        """Return the budgets that limit an entry: its book, or None for the budget of the rules."""
        book = one.book
        if book.token_budget is None:
            return _RULES_ONLY
        return (book,) if "lore_budget" in book.grants else (book, None)

    def _left(self, budget: Lorebook | None) -> int:
        if budget is not None:
            self._room.setdefault(budget, budget.token_budget or 0)
        return self._room[budget]

    def _cost(
        self, one: Candidate, budgets: tuple[Lorebook | None, ...], together: "CountedAsOne"
    ) -> int:
        """Return how many tokens an entry adds to the entries already admitted.

        The number is exact if the decision depends on it. Otherwise it is an upper bound.
        """
        at_most = together.at_most(one.tokens)
        if at_most <= min(map(self._left, budgets)) - self._is_open:
            return at_most
        self._room[None] += together.count()
        room = min(map(self._left, budgets)) - self._is_open
        surely_too_much = together.at_least(one.tokens) > room and not _ignores_budget(one)
        return one.tokens if surely_too_much else together.cost(one.text)

    def _charge(
        self, one: Candidate, budgets: Iterable[Lorebook | None], cost: int, speaker: str | None
    ) -> None:
        for budget in budgets:
            self._room[budget] -= cost
        if self._together is not None:
            self._together.add([one.text], tokens=cost)
        if self.is_shared and speaker is not None and not one.entry.constant:
            tokens, woken = self._by_speaker.get(speaker, (0, 0))
            self._by_speaker[speaker] = tokens + cost, woken + 1

    def _over_share(self, one: Candidate, speaker: str | None) -> str:
        """Return why an entry exceeds the budget share of its speaker; "" if it does not."""
        if speaker is None or one.entry.constant:
            return ""
        rules, shown = self._rules, speaker or "somebody"
        tokens, woken = self._by_speaker.get(speaker, (0, 0))
        if rules.speaker_matches and woken >= rules.speaker_matches:
            return (
                f"over the share of {shown}, who activated {rules.speaker_matches} entries already"
            )
        left = max(self._share - tokens, 0)
        if rules.speaker_share_percent < 100 and one.tokens > left:
            return f"over {shown}'s share of the lore budget: {one.tokens} tokens, {left} were left"
        return ""


def in_processing_order(
    candidates: Iterable[Candidate], rules: ActivationRules
) -> Sequence[Candidate]:
    """Sort the candidates of a pass into the order in which groups and recursion process them."""
    placed = sorted(candidates, key=PLACE)
    return placed if PRESET_FLAGS[rules.rules].tiers else by_survival(placed)


def by_survival(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Sort candidates so that those that get tokens first come first. The sort is stable.

    Two sorts by a single number are much faster than one sort by tuples.
    """
    return sorted(sorted(candidates, key=_YIELDS), key=_TIER)


def survival_rank(
    entry: LoreEntry, *, vouched: bool, sticky: bool, rules: ActivationRules
) -> tuple[int, float]:
    """Return the budget tier of an entry and its rank in it. Low values get tokens first.

    `vouched` is True if the book has the grant "lore_budget".
    """
    if PRESET_FLAGS[rules.rules].tiers:
        tier = 4 * entry.first_to_go + 2 * (not vouched) + (not entry.constant)
        return tier, -entry.priority
    return int(not sticky), 0.0


def _ignores_budget(one: Candidate) -> bool:
    """True if an entry ignores the budget and its book has the grant for that."""
    return one.entry.ignore_budget and "lore_budget" in one.book.grants


class CountedAsOne:
    """The texts that an activation pass admits, counted as one text (preset `sillytavern`).

    For each new text, SillyTavern counts all texts of the pass again as one text (`checkWorldInfo`
    in its world-info.js). The time for that grows with the square of the number of texts. A text
    adds its own tokens to the count, plus or minus one separator. So this class uses these bounds,
    and counts exactly only if the exact number decides whether an entry fits.

    `before` is the text that the previous pass left for recursion to search. `tokens` is the number
    of tokens of all texts: exact after `count`, otherwise an upper bound.
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
        """Return the most tokens that a text of `tokens` tokens adds to the admitted texts."""
        return tokens + self._counter.per_separator

    def at_least(self, tokens: int) -> int:
        """Return the fewest tokens that a text of `tokens` tokens adds to the admitted texts."""
        return tokens - self._counter.per_separator

    def add(self, texts: Iterable[str], *, tokens: int) -> None:
        """Admit texts that together add at most `tokens` tokens to the count."""
        was_counted, self._counted_with = self._counted_with, None
        added = [*texts]
        self._is_counted = self._is_counted and added == [was_counted]
        self._texts += added
        self.tokens += tokens

    def count(self) -> int:
        """Count the admitted texts exactly; return by how many tokens the bound was too high."""
        at_most = self.tokens
        if not self._is_counted:
            self._before_tokens = self._counter.count(self._before) if self._before else 0
            self.tokens = self._counted()
            self._is_counted = True
        return at_most - self.tokens

    def cost(self, text: str) -> int:
        """Return exactly how many tokens a text adds to the admitted texts. Call `count` before."""
        self._counted_with = text
        return self._counted(text) - self.tokens

    def _counted(self, *more: str) -> int:
        texts = "".join([f"{text}\n" for text in (*self._texts, *more)])
        return self._before_tokens + self._counter.count(texts)
