"""One activation run: pass after pass adds to what is active, and nothing is taken away again.

In each pass the entries that something concerns are judged, groups choose among those that are
candidates, chance is rolled, and what is left competes for the budget. What becomes active passes
its text on to the next pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.activation.active_books import ActiveBook
from evennia_ai.engine.lorebook.activation.admission import Admission, PassOutcome
from evennia_ai.engine.lorebook.activation.candidate import (
    Candidate,
    Judgement,
    plain,
)
from evennia_ai.engine.lorebook.activation.followed import WokenByKeys, decided_by_keys
from evennia_ai.engine.lorebook.activation.judging import (
    PassResult,
    PassSchedule,
    PassView,
    judge,
    score,
)
from evennia_ai.engine.lorebook.activation.lore_budget import LoreBudget, Spent
from evennia_ai.engine.lorebook.activation.timers import Timers
from evennia_ai.engine.lorebook.conditions import Facts
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules, PresetFlags
from evennia_ai.engine.lorebook.scan.hit_cache import FED
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Slot, typed_frozen
from evennia_ai.engine.prompt.templates.work import Meter, OutOfWorkError
from evennia_ai.engine.prompt.tokens import TokenCounter

# However the rules are set, a run ends: no more entries than this are judged, pass for pass.
MOST_JUDGED: Final = 20_000


class KeptPass(NamedTuple):
    """A pass of the turn before: where it has the same candidates again, it decides the same."""

    made_for: object
    candidates: list[Candidate]
    outcome: PassOutcome


_NOTHING_DECIDED: Final = PassOutcome()
# By the number of a pass.
_PASSES: Final = Slot[dict[int, KeptPass]]("passes")


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
    meter: Meter
    """The work that filling in the texts of entries may take."""
    is_short: bool = False
    """Whether all of them need more than that: then they are filled in one after the other, in the
    order of their books, and those that come too late are left out."""


class ActivationRun:
    """One run in the making; `make_passes` once, then read `active` and what the books say."""

    def __init__(self, active_books: Sequence[ActiveBook], inputs: RunInputs) -> None:
        self.active: list[Candidate] = []
        self.remembered: list[Candidate] = []
        self._books = active_books
        self._inputs = inputs
        self._rules: ActivationRules = inputs.rules
        self._flags: PresetFlags = PRESET_FLAGS[inputs.rules.rules]
        self._passed_on: set[int] = set()
        self._lost: set[int] = set()
        self._speakers: dict[str, str | None] = {}
        self._now: dict[tuple[int, int], Judgement] = {}
        self._judged = 0
        self._most = inputs.rules.most_woken or MOST_JUDGED
        told = f"not looked at: more than {self._most} entries were asked"
        self._overlooked = Judgement(False, plain(told))
        self._schedule = PassSchedule(
            inputs.rules,
            recursive=any(book.recursive for book in active_books),
            levels=(level for book in active_books for level in book.levels),
            length=inputs.scan.length if inputs.rules.min_activations else 0,
        )
        self._spent: Spent | None = None
        self._count_speaking = self._count_speakers()

    def make_passes(self) -> None:
        """Make all passes.

        OutOfWorkError: the texts need more work than there is, and the inputs are not `is_short`.
        """
        self._open()
        while True:
            outcome = self._decided(self._candidates())
            self._take(outcome)
            result = PassResult(
                passed_on=self._new_among(outcome),
                active=len(self.active),
                budget_is_full=self._spent is not None and self._spent.overflowed,
            )
            if not self._schedule.moves_on(result):
                return
            self._pass_on(outcome)

    def _open(self) -> None:
        """Ask for what the conversation concerns, for what stays, and for what asks for itself."""
        rules, counter = self._rules, self._inputs.counter
        for book in self._books:
            book.ask(book.key_index.asked)
            book.ask_identities(self._inputs.timers.sticky)
            in_sources, deepest = book.window.sources(), book.key_index.deepest
            book.ask_owners(in_sources)
            book.window.reach(max(book.depth, deepest))
            is_widened = in_sources or deepest > book.depth or rules.min_activations
            if is_widened or not book.depth or self._inputs.is_short:
                book.unfollow()
            else:
                made_for = (book.lorebook, book.rank, book.depth, counter, rules)
                book.follow(made_for, self._inputs.values)

    def _candidates(self) -> list[Candidate]:
        """The entries that this pass wakes."""
        candidates: list[Candidate] = []
        self._now = {}
        for book in self._books:
            view = self._view(book)
            book.ask_owners(book.window.given_up)
            book.asked -= book.settled
            woken = self._followed(book, view)
            if woken is None:
                book.ask_owners(book.window.fed)
                book.asked -= book.settled
            else:
                candidates += woken.candidates.values()
            candidates += self._asked(book, view)
        return candidates

    def _followed(self, book: ActiveBook, view: PassView) -> WokenByKeys | None:
        """The entries that keys alone wake; only those are judged whose keys stand elsewhere."""
        woken = book.woken(self._schedule.number)
        if woken is None:
            return None
        while woken.stale:
            self._follow(book, woken, woken.stale.pop(), view)
        if woken.works:
            book.pay_for(woken, self._inputs.meter)
        woken.sort_in_newcomers()
        asked = book.asked | (woken.others - book.settled)
        if self._judged + len(woken.judgements) + len(asked) > self._most:
            book.unfollow()
            return None
        book.asked = asked
        self._judged += len(woken.judgements)
        book.judgements.update(woken.judgements)
        return woken

    def _follow(self, book: ActiveBook, woken: WokenByKeys, index: int, view: PassView) -> None:
        """Judge an entry whose keys stand elsewhere than in the turn before."""
        number, one = self._schedule.number, woken.candidates.get(index)
        was_there = one is not None
        entry, keys = book.entries[index], book.key_index.entry_keys[index]
        if not book.is_woken(index, keys.primary, number):
            woken.drop(index)
        elif one is not None or decided_by_keys(entry, keys):
            found = judge(entry, keys, view, identity=book.identities[index])
            if found.is_candidate and one is None:
                one = self._candidate(book, index, found)
                book.reads(entry.template.names, self._inputs.values)
            woken.put(index, found, one)
        else:
            woken.others.add(index)
        if was_there != (index in woken.judgements):
            book.tell_later(index, number)

    def _asked(self, book: ActiveBook, view: PassView) -> Iterator[Candidate]:
        """The candidates among the entries that are asked one by one."""
        for index in sorted(book.asked):
            found = self._judgement(book, index, view)
            if found is None:
                book.asked.remove(index)
                book.say(index, self._overlooked)
            elif not found.is_candidate:
                book.say(index, found)
            else:
                why = "its content is empty"
                try:
                    one = self._candidate(book, index, found)
                except OutOfWorkError as error:
                    if not self._inputs.is_short:
                        raise
                    one, why = None, error.problem
                if one is None:
                    book.say(index, Judgement(False, plain(f"{found.reason}, but {why}")))
                    book.settled.add(index)
                else:
                    self._now[book.rank, index] = found
                    yield one

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

    def _candidate(self, book: ActiveBook, index: int, found: Judgement) -> Candidate | None:
        """The entry with its text; None where it has none and that makes it silent."""
        inputs = self._inputs
        return book.candidate(
            index,
            found,
            values=inputs.values,
            dice=inputs.dice,
            counter=inputs.counter,
            timers=inputs.timers,
            meter=inputs.meter,
        )

    def _decided(self, candidates: list[Candidate]) -> PassOutcome:
        """What groups, chance and the budget decide; as in the turn before where it must be."""
        if not candidates:
            return _NOTHING_DECIDED
        inputs, schedule, books = self._inputs, self._schedule, self._books
        kept = books[0].window.memo.setdefault(_PASSES, {})
        made_for = (self._rules, inputs.limit_tokens, inputs.counter, schedule.kind, self._spent)
        last, has_shares = kept.get(schedule.number), self._count_speaking > 1
        if last and last.candidates == candidates and last.made_for == made_for and not has_shares:
            return last.outcome
        outcome = Admission(
            rules=self._rules,
            dice=inputs.dice,
            budget=self._budget(),
            number=schedule.number,
            kind=schedule.kind,
            active=self.active,
            lost=self._lost,
            score=self._score,
            speaker=self._speaker_of,
            recursive=[book.rank for book in books if book.recursive],
        ).outcome(candidates)
        if not has_shares and all(one.is_steady for one in candidates):
            kept[schedule.number] = KeptPass(made_for, candidates, outcome)
        return outcome

    def _budget(self) -> LoreBudget:
        """The budgets of this pass."""
        return LoreBudget(
            self._rules,
            limit_tokens=self._inputs.limit_tokens,
            counter=self._inputs.counter,
            speakers=self._count_speaking,
            spent=self._spent,
        )

    def _take(self, outcome: PassOutcome) -> None:
        """What a pass decided counts."""
        self.active += outcome.active
        self.remembered += outcome.remembered
        self._spent = outcome.spent or self._spent
        if self._count_speaking > 1:
            self._speakers.update((one.label, self._speaker_of(one)) for one in outcome.active)
        for rank, rulings in outcome.rulings.items():
            book, settled = self._books[rank], outcome.settled.get(rank, set())
            book.rulings.update(rulings)
            book.settled |= settled
            book.ask(rulings.keys() - settled)
        for (rank, index), judgement in self._now.items():
            if index in outcome.rulings.get(rank, ()):
                self._books[rank].judgements[index] = judgement

    def _new_among(self, outcome: PassOutcome) -> int:
        """How many pass their text on that did not do so before: who is admitted never did."""
        if not self._flags.counts_what_recursed:
            return len(outcome.passed_on)
        known = len(self._passed_on)
        self._passed_on |= outcome.numbers
        return len(self._passed_on) - known

    def _pass_on(self, outcome: PassOutcome) -> None:
        """Let the texts be searched in the passes to come."""
        passed_on = outcome.passed_on
        for book in self._books:
            if self._is_fed(book):
                book.window.feed(outcome.texts)
                book.window.feed_as_one(one.text for one in passed_on)
        carried = outcome.carried or self._budget().after(passed_on)
        if outcome is not _NOTHING_DECIDED:
            outcome.carried = carried
        self._spent = carried

    def _is_fed(self, book: ActiveBook) -> bool:
        """Whether texts of entries reach this book; the application lets them, in later passes."""
        return book.recursive or self._flags.counts_what_recursed

    def _score(self, one: Candidate) -> int:
        book = self._books[one.rank]
        return score(one.entry, book.key_index.entry_keys[one.entry.index], self._view(book))

    def _speaker_of(self, one: Candidate) -> str | None:
        """Who woke an entry: who said the key, or who woke the entry whose text has it."""
        index = one.entry.index
        woken_by = self._now.get((one.rank, index)) or self._books[one.rank].judgements[index]
        found = woken_by.found
        speaker = None
        if found is not None:
            fed = found.place == FED
            speaker = (
                self._speakers.get(found.of) if fed else self._inputs.scan.speaker(found.place)
            )
        self._speakers[one.label] = speaker
        return speaker

    def _count_speakers(self) -> int:
        """How many people spoke in what is scanned, where their shares count."""
        rules = self._rules
        if rules.speaker_share_percent >= 100 and not rules.speaker_matches:
            return 0
        depth = max((book.depth for book in self._books), default=0)
        messages = islice(self._inputs.scan.newest(), depth)
        return len({message.name for _, message in messages if message.role == "user"})
