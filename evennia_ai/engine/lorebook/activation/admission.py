"""Admission: what a pass decides about its candidates.

Groups choose, chance is rolled once, and what is left competes for the budget, in the order of its
survival. A pass whose candidates are those of the turn before, where neither groups nor chance have
a say, is not decided again: `activation_run` keeps what came of it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

from evennia_ai.engine.lorebook.activation.candidate import (
    Candidate,
    EntryReason,
    Ruling,
    in_pass,
    rolled,
)
from evennia_ai.engine.lorebook.activation.groups import ContestOutcome, contest
from evennia_ai.engine.lorebook.activation.lore_budget import (
    LoreBudget,
    Spent,
    by_survival,
    in_processing_order,
)
from evennia_ai.engine.lorebook.book import containment_in_words
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import typed_frozen

_NO_CONTEST: Final = ContestOutcome({}, {})


class PassOutcome:
    """What a pass decided about its candidates: who is active and who passes text on.

    `rulings` and `settled` are by the rank of a book and the index of an entry; what is settled is
    not asked again. `spent` is what it left of the budgets.
    """

    def __init__(self) -> None:
        self.active: list[Candidate] = []
        self.passed_on: list[Candidate] = []
        self.rulings: dict[int, dict[int, Ruling]] = defaultdict(dict)
        self.settled: dict[int, set[int]] = defaultdict(set)
        self.remembered: list[Candidate] = []
        """Those active that later turns ask about."""
        self.spent: Spent | None = None
        self.carried: Spent | None = None
        """What is left for the next pass, once there was one."""

    @cached_property
    def numbers(self) -> frozenset[int]:
        """Of those that pass text on."""
        return frozenset([one.number for one in self.passed_on])

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """What of those is searched, with the entry's label."""
        return [(one.label, one.searched) for one in self.passed_on]

    def rule(self, one: Candidate, ruling: Ruling) -> None:
        """What became of a candidate; a later pass may decide otherwise."""
        self.rulings[one.rank][one.entry.index] = ruling

    def settle(self, one: Candidate, ruling: Ruling) -> None:
        """The last word on a candidate."""
        self.settle_all(one.rank, {one.entry.index: ruling})

    def settle_all(self, rank: int, rulings: Mapping[int, Ruling]) -> None:
        """The last word on candidates of one book."""
        self.rulings[rank].update(rulings)
        self.settled[rank].update(rulings)


@typed_frozen
class Admission:
    """What one pass is decided by, beside its candidates."""

    rules: ActivationRules
    dice: Dice
    budget: LoreBudget
    number: int
    """Of the pass."""
    kind: str
    active: Collection[Candidate]
    """The entries of earlier passes."""
    lost: set[int]
    """Who lost in a group before, by number; who does now joins them."""
    score: Callable[[Candidate], int]
    """How many keys of an entry were found."""
    speaker: Callable[[Candidate], str | None]
    """Who woke it."""
    recursive: Collection[int]
    """The ranks of the books whose texts wake others."""

    def outcome(self, candidates: Sequence[Candidate]) -> PassOutcome:
        """What becomes of the candidates."""
        candidates = in_processing_order(candidates, self.rules)
        outcome, budget = PassOutcome(), self.budget
        contested = self._contest(candidates, outcome)
        lost = contested.lost
        offered = [one for one in candidates if id(one) not in lost] if lost else candidates
        ordered = by_survival(offered)
        in_a_row = self._admitted_in_a_row(ordered, outcome)
        admitted = {id(one) for one in in_a_row}
        unlucky: set[int] = set()
        for one in ordered[len(in_a_row) :]:
            roll = None if one.is_steady else self._rolled(one)
            if roll is not None and not self._passes(one, roll):
                unlucky.add(id(one))
                chance = EntryReason(rolled, (roll, one.entry.chance))
                outcome.settle(one, Ruling(False, (chance,)))
            elif self._is_admitted(one, roll, contested, outcome):
                admitted.add(id(one))
        outcome.active = [one for one in offered if id(one) in admitted]
        outcome.remembered = [one for one in outcome.active if one.is_remembered]
        outcome.spent = budget.spent
        if self.rules.flags.counts_what_recursed:  # what had no room is passed on as well
            passed_on = [one for one in offered if id(one) not in unlucky]
        else:
            passed_on = [one for one in outcome.active if one.rank in self.recursive]
        outcome.passed_on = [one for one in passed_on if not one.entry.recursion.prevented]
        return outcome

    def _contest(self, candidates: Sequence[Candidate], outcome: PassOutcome) -> ContestOutcome:
        """The groups' choice; who lost may come back in a later pass."""
        if not any(one.entry.grouping.names for one in candidates):
            return _NO_CONTEST
        contested = contest(
            candidates,
            rules=self.rules,
            active=self.active,
            roll=lambda name: self._roll("group", name, self.number),
            score=self.score,
        )
        for one in candidates:
            why = contested.lost.get(id(one))
            if why and one.number not in self.lost:  # how it first lost says more than that it did
                outcome.rule(one, Ruling(False, (why,)))
                self.lost.add(one.number)
        return contested

    def _admitted_in_a_row(
        self, candidates: Sequence[Candidate], outcome: PassOutcome
    ) -> Sequence[Candidate]:
        """The first of the candidates, of whom neither chance nor groups nor shares are asked."""
        charges, is_first = self.budget.offer_in_a_row(candidates), self.number == 1
        rulings: dict[int, dict[int, Ruling]] = defaultdict(dict)
        for one, charge in zip(candidates, charges, strict=False):
            has_details = one.lacking or not is_first
            details = self._details(one, None, _NO_CONTEST) if has_details else ()
            rulings[one.rank][one.entry.index] = Ruling(True, details, one.tokens, charge)
        for rank, of_book in rulings.items():
            outcome.settle_all(rank, of_book)
        return candidates[: len(charges)]

    def _is_admitted(
        self,
        one: Candidate,
        roll: float | None,
        contested: ContestOutcome,
        outcome: PassOutcome,
    ) -> bool:
        speaker = self.speaker(one) if self.budget.is_shared else None
        charge = self.budget.offer(one, speaker=speaker)
        if isinstance(charge, str):
            no = Ruling(False, (charge,), one.tokens)
            # Room only gets less: who had none has none later, unless texts are counted anew.
            (outcome.rule if self.rules.flags.counts_what_recursed else outcome.settle)(one, no)
            return False
        details = self._details(one, roll, contested)
        outcome.settle(one, Ruling(True, details, one.tokens, charge))
        return True

    def _details(
        self, one: Candidate, roll: float | None, contested: ContestOutcome
    ) -> tuple[object, ...]:
        """What is to be said of an admitted entry beside its cause and what it cost."""
        details: list[object] = []
        if self.number > 1:
            details.append(EntryReason(in_pass, (self.number, self.kind)))
        if won := contested.won.get(id(one)):
            details.append(won)
        if roll is not None:
            details.append(EntryReason(rolled, (roll, one.entry.chance)))
        if one.lacking:
            details.append(EntryReason(containment_in_words, (one.lacking, one.entry.position)))
        return tuple(details)

    def _rolled(self, one: Candidate) -> float | None:
        """The roll of an entry that leaves it to chance and has one; one roll a run."""
        if one.entry.chance >= 100 or one.sticky or self.budget.is_closed_to(one):
            return None
        return self._roll("chance", one.label, one.book.revision)

    def _passes(self, one: Candidate, roll: float) -> bool:
        chance = one.entry.chance
        if self.rules.flags.chance_is_inclusive:
            return roll * 100 <= chance
        return roll * 100 < chance

    def _roll(self, *what: object) -> float:
        fixed = self.rules.dice
        return self.dice.roll("lore", *what) if fixed is None else fixed
