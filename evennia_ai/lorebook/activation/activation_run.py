"""One activation run: pass after pass adds to what is active, and nothing is taken away again.

In each pass the entries that something concerns are judged, groups choose among those that are
candidates, chance is rolled, and what is left competes for the budget. What becomes active passes
its text on to the next pass.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.lorebook.activation.active_books import ActiveBook
from evennia_ai.lorebook.activation.candidate import (
    Candidate,
    EntryReason,
    Judgement,
    in_pass,
    rolled,
)
from evennia_ai.lorebook.activation.groups import ContestOutcome, contest
from evennia_ai.lorebook.activation.judging import PassResult, PassSchedule, PassView, judge, score
from evennia_ai.lorebook.activation.lore_budget import LoreBudget, processing, survival
from evennia_ai.lorebook.activation.timers import Timers
from evennia_ai.lorebook.book import containment_in_words, missing
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.lorebook.rules import PRESET_FLAGS, ActivationRules, PresetFlags
from evennia_ai.lorebook.scan.matching import FED, FoundKey
from evennia_ai.lorebook.scan.window import Scan
from evennia_ai.prompt.components import ALL_GRANTS
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.memo import typed_frozen
from evennia_ai.prompt.tokens import TokenCounter

# However the rules are set, a run ends: no more entries than this are judged, pass for pass.
MOST_JUDGED: Final = 20_000
# An entry of a run: the rank of its book, its index in it.
EntryRef = tuple[int, int]


_survival: Final = attrgetter("survival")


class EntryDecision(NamedTuple):
    """What became of an entry that something concerned: the last word, with its details."""

    kept: bool
    reasons: tuple[object, ...]
    tokens: int = 0


@typed_frozen
class RunInputs:
    """What a run is made with, beside the books."""

    scan: Scan
    rules: ActivationRules
    timers: Timers
    facts: Facts
    values: Mapping[str, str]
    dice: Dice
    counter: TokenCounter
    limit_tokens: int


class ActivationRun:
    """One run in the making; `make_passes` once, then read `active` and `decisions`."""

    def __init__(self, active_books: Sequence[ActiveBook], inputs: RunInputs) -> None:
        self.active: list[Candidate] = []
        self.decisions: dict[EntryRef, EntryDecision] = {}
        self._books = active_books
        self._inputs = inputs
        self._rules: ActivationRules = inputs.rules
        self._flags: PresetFlags = PRESET_FLAGS[inputs.rules.rules]
        self._settled: set[EntryRef] = set()
        self._passed_on: set[EntryRef] = set()
        self._lost: set[EntryRef] = set()
        self._speakers: dict[str, str | None] = {}
        self._judged = 0
        self._most = inputs.rules.most_woken or MOST_JUDGED
        told = f"not looked at: more than {self._most} entries were asked"
        self._overlooked = EntryDecision(False, (told,))
        self._schedule = PassSchedule(
            inputs.rules,
            recursive=any(book.recursive for book in active_books),
            levels=(level for book in active_books for level in book.levels),
            length=inputs.scan.length if inputs.rules.min_activations else 0,
        )
        self._lore_budget = LoreBudget(
            inputs.rules,
            limit_tokens=inputs.limit_tokens,
            counter=inputs.counter,
            speakers=self._count_speakers(),
        )

    def make_passes(self) -> None:
        """Make all passes."""
        self._open()
        while True:
            passed_on = self._admit(self._candidates())
            result = PassResult(
                passed_on=len({one.ref for one in passed_on} - self._passed_on),
                active=len(self.active),
                budget_is_full=self._lore_budget.overflowed,
            )
            if not self._schedule.moves_on(result):
                return
            self._passed_on.update(one.ref for one in passed_on)
            self._pass_on(passed_on)

    def _open(self) -> None:
        """Ask for what the conversation concerns, for what stays, and for what asks for itself."""
        for book in self._books:
            book.ask(book.key_index.asked)
            book.ask_identities(self._inputs.timers.sticky)
            book.ask_owners(book.window.sources())
            book.ask_owners(book.window.reach(max(book.depth, book.key_index.deepest)))

    def _candidates(self) -> list[Candidate]:
        """The entries that this pass wakes, in processing order."""
        candidates: list[Candidate] = []
        settled = self._settled
        for book in self._books:
            view, rank = self._view(book), book.rank
            for index in sorted(book.asked):
                if settled and (rank, index) in settled:
                    book.asked.remove(index)
                    continue
                found = self._judgement(book, index, view)
                if found is None:
                    book.asked.remove(index)
                    self.decisions[rank, index] = self._overlooked
                    continue
                if not found.is_candidate:
                    self.decisions[rank, index] = EntryDecision(False, (found.reason,))
                elif (one := self._with_text(book, index, found)) is not None:
                    candidates.append(one)
        candidates.sort(key=processing(self._rules))
        return candidates

    def _view(self, book: ActiveBook) -> PassView:
        inputs, schedule = self._inputs, self._schedule
        depth = book.depth + schedule.widened
        book.seen = depth
        if schedule.kind == "widened":
            book.ask_owners(book.window.reach(depth))
        is_fresh = schedule.kind == "widened" and self._flags.widening_is_fresh
        return PassView(
            window=book.window,
            judged=book.judged,
            kind=schedule.kind,
            level=schedule.level,
            depth=depth,
            recursive=schedule.recursive,
            sees_fed=self._is_fed(book) and not is_fresh,
            rules=self._rules,
            timers=inputs.timers,
            facts=inputs.facts,
            replies=inputs.scan.history.replies,
        )

    def _judgement(self, book: ActiveBook, index: int, view: PassView) -> Judgement | None:
        """The judgement on an entry; None where too many were judged already."""
        entry = book.entries[index]
        self._judged += 1
        if self._judged > self._most and not (entry.constant and self._judged <= MOST_JUDGED):
            return None
        return judge(entry, book.key_index.entry_keys[index], view, identity=book.identities[index])

    def _with_text(self, book: ActiveBook, index: int, found: Judgement) -> Candidate | None:
        """The entry with its text; None where it has none and that makes it silent."""
        counter, rank = self._inputs.counter, book.rank
        known = book.candidates.get(index)
        if known is not None and not (
            known.is_lasting
            and known.judgement is found
            and known.counter is counter
            and known.rank == rank
        ):
            known = None
        if known is not None and known.is_fed and known.speaker != self._speaker(found.found):
            known = None  # somebody else woke the entry that wakes it
        if known is not None and known.is_constant_text:
            return known
        text, tokens = book.text(index, self._inputs.values, self._inputs.dice, counter)
        if not text.strip() and not self._flags.empty_is_active:
            why = EntryDecision(False, (f"{found.reason}, but its content is empty",))
            self._settle((rank, index), why)
            return None
        if known is not None and known.text == text:
            return known
        made = book.candidates[index] = self._made(book, index, found, text, tokens)
        return made

    def _made(
        self, book: ActiveBook, index: int, found: Judgement, text: str, tokens: int
    ) -> Candidate:
        entry, place = book.entries[index], book.place(book.entries[index])
        return Candidate(
            place=place,
            survival=survival(
                entry,
                place,
                vouched="lore_budget" in book.lorebook.grants,
                sticky=found.sticky,
                rules=self._rules,
            ),
            rank=book.rank,
            book=book.lorebook,
            entry=entry,
            label=book.labels[index],
            identity=book.identities[index],
            judgement=found,
            ref=(book.rank, index),
            sticky=found.sticky,
            is_fed=found.found is not None and found.found.place == FED,
            rests=book.identities[index] in self._inputs.timers.resting,
            text=text,
            searched=text + book.key_index.entry_keys[index].hidden,
            is_constant_text=not (entry.template.names or entry.template.rolls),
            tokens=tokens,
            counter=self._inputs.counter,
            speaker=self._speaker(found.found),
            is_lasting=not entry.timing.cooldown,  # with one, whether it rests may change
        )

    def _admit(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Let groups, chance and the budget decide; the entries that pass their text on."""
        if not candidates:
            return []
        outcome = self._contest(candidates)
        lost = outcome.lost
        offered = [one for one in candidates if id(one) not in lost] if lost else candidates
        admitted: set[int] = set()
        unlucky: set[int] = set()
        for one in sorted(offered, key=_survival):
            roll = self._rolled(one)
            if roll is not None and not self._passes(one, roll):
                unlucky.add(id(one))
                chance = EntryReason(rolled, (roll, one.entry.chance))
                self._settle(one.ref, EntryDecision(False, (one, chance)))
            elif self._is_admitted(one, roll, outcome):
                admitted.add(id(one))
        self.active += [one for one in offered if id(one) in admitted]
        if self._flags.counts_what_recursed:  # what had no room is passed on as well
            return [o for o in offered if id(o) not in unlucky and not o.entry.recursion.prevented]
        return [o for o in offered if id(o) in admitted and self._may_feed(o)]

    def _contest(self, candidates: Sequence[Candidate]) -> ContestOutcome:
        """The groups' choice; who lost may come back in a later pass."""
        if not any(one.entry.grouping.names for one in candidates):
            return ContestOutcome({}, {})
        outcome = contest(
            candidates,
            rules=self._rules,
            active=self.active,
            roll=lambda name: self._roll("group", name, self._schedule.number),
            score=self._score,
        )
        for one in candidates:
            why = outcome.lost.get(id(one))
            if why and one.ref not in self._lost:  # how it first lost says more than that it did
                self.decisions[one.ref] = EntryDecision(False, (one, why))
                self._lost.add(one.ref)
        return outcome

    def _is_admitted(self, one: Candidate, roll: float | None, outcome: ContestOutcome) -> bool:
        charge = self._lore_budget.offer(one)
        if isinstance(charge, str):
            no = EntryDecision(False, (one, charge), one.tokens)
            # Room only gets less: who had none has none later, unless texts are counted anew.
            if self._flags.counts_what_recursed:
                self.decisions[one.ref] = no
            else:
                self._settle(one.ref, no)
            return False
        said = (one, *self._details(one, roll, outcome), charge)
        self._settle(one.ref, EntryDecision(True, said, one.tokens))
        if self._lore_budget.is_shared:
            self._speakers[one.label] = one.speaker
        return True

    def _details(
        self, one: Candidate, roll: float | None, outcome: ContestOutcome
    ) -> Sequence[object]:
        """What is to be said of an admitted entry beside its cause and what it cost."""
        is_first = self._schedule.number == 1
        is_free = one.book.grants == ALL_GRANTS
        if is_first and roll is None and not outcome.won and is_free:
            return ()
        details: list[object] = []
        if not is_first:
            details.append(EntryReason(in_pass, (self._schedule.number, self._schedule.kind)))
        if won := outcome.won.get(id(one)):
            details.append(won)
        if roll is not None:
            details.append(EntryReason(rolled, (roll, one.entry.chance)))
        if lacking := () if is_free else missing(one.entry, one.book.grants):
            details.append(EntryReason(containment_in_words, (lacking, one.entry.position)))
        return details

    def _pass_on(self, passed_on: Sequence[Candidate]) -> None:
        """Let the texts be searched in the passes to come."""
        for book in self._books:
            if self._is_fed(book):
                for one in passed_on:
                    book.ask_owners(book.window.feed(one.searched, of=one.label))
                book.window.feed_as_one("\n".join(one.text for one in passed_on))
        self._lore_budget.next_pass([one.text for one in passed_on])

    def _is_fed(self, book: ActiveBook) -> bool:
        """Whether texts of entries reach this book; the application lets them, in later passes."""
        return book.recursive or self._flags.counts_what_recursed

    def _may_feed(self, one: Candidate) -> bool:
        return self._books[one.rank].recursive and not one.entry.recursion.prevented

    def _rolled(self, one: Candidate) -> float | None:
        """The roll of an entry that leaves it to chance and has one; one roll a run."""
        if one.entry.chance >= 100 or one.sticky or self._lore_budget.is_closed_to(one):
            return None
        return self._roll("chance", one.label, one.book.revision)

    def _passes(self, one: Candidate, roll: float) -> bool:
        chance = one.entry.chance
        if self._flags.chance_is_inclusive:
            return roll * 100 <= chance
        return roll * 100 < chance

    def _roll(self, *what: object) -> float:
        fixed = self._rules.dice
        return self._inputs.dice.roll("lore", *what) if fixed is None else fixed

    def _score(self, one: Candidate) -> int:
        book = self._books[one.rank]
        return score(one.entry, book.key_index.entry_keys[one.entry.index], self._view(book))

    def _settle(self, ref: EntryRef, decision: EntryDecision) -> None:
        """The last word on an entry: it is not asked again."""
        self.decisions[ref] = decision
        self._settled.add(ref)

    def _speaker(self, found: FoundKey | None) -> str | None:
        """Who woke an entry: who said the key, or who woke the entry whose text has it."""
        if found is None:
            return None
        if found.place == FED:
            return self._speakers.get(found.of)
        return self._inputs.scan.speaker(found.place)

    def _count_speakers(self) -> int:
        """How many people spoke in what is scanned, where their shares count."""
        rules = self._rules
        if rules.speaker_share_percent >= 100 and not rules.speaker_matches:
            return 0
        depth = max((book.depth for book in self._books), default=0)
        messages = islice(self._inputs.scan.newest(), depth)
        return len({message.name for _, message in messages if message.role == "user"})
