"""The passes of lore activation, in the order in which they happen.

A turn processes all its books together, in several passes. A pass only adds active entries and
never removes one. `ActivationRun.make_passes` takes these steps in each pass:

1. Mark the entries that the conversation may activate (`_mark_first_entries`).
2. Judge the marked entries by their conditions and keys. Entries that meet them become candidates
   (`_find_candidates`, `judging`).
3. Choose one member of each inclusion group (`_decide`, `groups`).
4. Roll dice for entries with a chance, once in a turn (`_decide`).
5. Offer the remaining candidates tokens of the lore budget (`_decide`, `lore_budget`).
6. Plan the next pass (`PassSchedule`). It may search the texts of entries that just became active
   (`_pass_texts_on`).

After the last pass, `activate_lore` places the active entries (`placed_entries`) and starts their
timers (`timers`).

The first pass searches the conversation. A recursion pass searches the texts of active entries. If
too few entries are active, a widened pass searches one more message. Entries with a delay level
become active level by level. A pass searches only texts that existed when it began, so entries that
become active in the same pass do not activate each other.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.active_books import (
    ActiveBook,
    active_books_of,
    entry_finder,
    order_books,
)
from evennia_ai.engine.lorebook.activation.candidate import Candidate, Judgement, Ruling
from evennia_ai.engine.lorebook.activation.groups import ContestOutcome, contest_groups
from evennia_ai.engine.lorebook.activation.judging import PassKind, PassView, count_found_keys
from evennia_ai.engine.lorebook.activation.lore_budget import (
    LoreBudget,
    Spent,
    by_survival,
    in_processing_order,
)
from evennia_ai.engine.lorebook.activation.placed_entries import place_entries
from evennia_ai.engine.lorebook.activation.reasons import (
    EntryReason,
    chance_reason,
    pass_reason,
    plain_reason,
)
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, Timers
from evennia_ai.engine.lorebook.book import Lorebook, containment_in_words, delay_levels_of
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS, ActivationRules, PresetFlags
from evennia_ai.engine.lorebook.scan.hit_cache import FED
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.conditions import Facts
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.templates.work import LORE_WORK, Meter, OutOfWorkError
from evennia_ai.engine.prompt.tokens import TokenCounter

# These limits apply to every run and cannot be configured, so every run ends.
MOST_JUDGED: Final = 20_000
"""The maximum number of judgements in one run, over all passes."""
MOST_WIDENED: Final = 1000
"""The maximum number of messages that widened passes search."""
MOST_PASSES: Final = 10_000
MOST_LEVELS: Final = 100
"""The maximum number of delay levels that a run reaches, lowest first."""

_NO_FACTS: Final[Facts] = {}
_START: Final = Clock()
_NO_CONTEST: Final = ContestOutcome({}, {})


def activate_lore(
    books: Iterable[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    limit_tokens: int,
    counter: TokenCounter,
    values: Mapping[str, str],
    dice: Dice,
    state: LoreState = NO_STATE,
    clock: Clock = _START,
    facts: Facts = _NO_FACTS,
    work: int = LORE_WORK,
) -> Activation:
    """Find the active entries of lorebooks. Equal arguments give equal results.

    Args:
        books: The lorebooks that apply in this turn, in any order.
        scan: The history, event, notes and sources that are searched for keys.
        rules: How activation works: preset, scan depth, recursion, budget.
        limit_tokens: The limit of the whole prompt. The rules give lore a share of it.
        counter: Counts the tokens of entries.
        values: The values that macros in keys and texts read.
        dice: The random numbers for chances and inclusion groups.
        state: The timers of lore as the previous turn left them.
        clock: The current time in turns, messages and game seconds.
        facts: Facts of the game that conditions of entries read.
        work: The maximum work that expanding the texts of entries may take.

    Returns:
        The active entries, and a verdict on each entry of each book.
    """
    ordered = order_books(books, rules)
    timers = Timers(
        NO_STATE if rules.dry_run else state,
        clock=clock,
        rules=rules,
        entry_of=entry_finder(ordered),
    )
    # If the first run needs more work than allowed, make a second, short run. It expands texts one
    # by one and leaves out those that come after the work is used up.
    for is_short in (False, True):
        meter = Meter(work)
        active_books = active_books_of(
            ordered,
            scan,
            rules=rules,
            values=values,
            dice=dice,
            counter=counter,
            timers=timers,
            meter=meter,
        )
        run = ActivationRun(
            books=active_books,
            scan=scan,
            rules=rules,
            facts=facts,
            timers=timers,
            values=values,
            dice=dice,
            counter=counter,
            limit_tokens=limit_tokens,
            is_short=is_short,
        )
        try:
            run.make_passes()
            break
        except OutOfWorkError:
            for book in active_books:
                # The run stopped while it updated the cached matches of keys, so they may be
                # wrong.
                book.forget_matches()
    remembered = {one.identity: one.entry for one in run.remembered}
    return Activation(
        place_entries(run.active, active_books, scan.history, rules=rules),
        after=state if rules.dry_run else timers.after(remembered),
        active_books=active_books,
        work=meter.spent,
    )


class PassOutcome:
    """The decisions of one activation pass about its candidates.

    `rulings` and `final` map the rank of a book to rulings on its entries, and to the indexes of
    entries that are not judged again.
    """

    def __init__(self) -> None:
        self.active: list[Candidate] = []
        self.passed_on: list[Candidate] = []
        """The candidates whose texts the next pass searches for keys."""
        self.remembered: list[Candidate] = []
        """The active candidates that later turns must know about."""
        self.rulings: dict[int, dict[int, Ruling]] = defaultdict(dict)
        self.final: dict[int, set[int]] = defaultdict(set)
        self.spent: Spent | None = None
        """The state of the budgets after this pass."""
        self.spent_in_next: Spent | None = None
        """The budgets at the start of the next pass; None until they are computed."""

    @cached_property
    def passed_on_numbers(self) -> frozenset[int]:
        """The numbers of the candidates whose texts the next pass searches."""
        return frozenset([one.number for one in self.passed_on])

    @cached_property
    def passed_on_texts(self) -> list[tuple[str, str]]:
        """The label of each candidate in `passed_on`, and the text that the next pass searches."""
        return [(one.label, one.searched) for one in self.passed_on]

    def rule(self, one: Candidate, ruling: Ruling) -> None:
        """Store a decision about a candidate that a later pass may change."""
        self.rulings[one.rank][one.entry.index] = ruling

    def rule_finally(self, one: Candidate, ruling: Ruling) -> None:
        """Store a final decision about a candidate. No later pass judges it again."""
        self.rulings[one.rank][one.entry.index] = ruling
        self.final[one.rank].add(one.entry.index)


class _KeptPass(NamedTuple):
    """The decisions of an activation pass, for the next turn to reuse if its inputs are equal."""

    made_for: object
    candidates: list[Candidate]
    outcome: PassOutcome


_NOTHING_DECIDED: Final = PassOutcome()
# The cached decisions of each activation pass, by number of the pass.
_PASSES: Final = Slot[dict[int, _KeptPass]]("passes")


@dataclass(slots=True, kw_only=True)
class ActivationRun:
    """The activation of lore in one turn, over all its books.

    Call `make_passes` once, then read the results.
    """

    books: Sequence[ActiveBook]
    scan: Scan
    rules: ActivationRules
    facts: Facts
    timers: Timers
    values: Mapping[str, str]
    dice: Dice
    counter: TokenCounter
    limit_tokens: int
    is_short: bool
    """True in the second run of a turn, after the first one needed more work than allowed.

    A short run expands texts one by one and leaves out entries that come after the work is used up.
    """

    active: list[Candidate] = field(default_factory=list, init=False)
    remembered: list[Candidate] = field(default_factory=list, init=False)
    _passed_on: set[int] = field(default_factory=set, init=False)
    _lost: set[int] = field(default_factory=set, init=False)
    """The numbers of the candidates that lost in an inclusion group."""
    _speakers: dict[str, str | None] = field(default_factory=dict, init=False)
    """The player who activated each active entry, by label of the entry."""
    _now: dict[tuple[int, int], Judgement] = field(default_factory=dict, init=False)
    """The judgements of this pass, by rank of the book and index of the entry.

    They are copied to the books after the pass has decided about the entry.
    """
    _judged: int = field(default=0, init=False)
    _spent: Spent | None = field(default=None, init=False)
    _flags: PresetFlags = field(init=False)
    _most: int = field(init=False)
    _schedule: "PassSchedule" = field(init=False)
    _speaker_count: int = field(init=False)

    def __post_init__(self) -> None:
        rules = self.rules
        self._flags = PRESET_FLAGS[rules.rules]
        self._most = rules.most_woken or MOST_JUDGED
        self._schedule = PassSchedule(
            rules,
            recursive=any(book.recursive for book in self.books),
            levels=(level for book in self.books for level in delay_levels_of(book.lorebook)),
            length=self.scan.length if rules.min_activations else 0,
        )
        self._speaker_count = 0
        if rules.speaker_share_percent < 100 or rules.speaker_matches:
            depth = max((book.depth for book in self.books), default=0)
            messages = islice(self.scan.newest(), depth)
            names = {message.name for _, message in messages if message.role == "user"}
            self._speaker_count = len(names)

    def make_passes(self) -> None:
        """Make all activation passes of the turn.

        Raises:
            OutOfWorkError: The texts need more work than allowed, and the run is not short.
        """
        self._mark_first_entries()
        while True:
            outcome = self._outcome_of(self._find_candidates())
            self._apply(outcome)
            if not self._schedule.move_on(
                PassResult(
                    passed_on=self._count_new_texts(outcome),
                    active=len(self.active),
                    budget_is_full=self._spent is not None and self._spent.overflowed,
                )
            ):
                return
            self._pass_texts_on(outcome)

    # Step 1: mark entries

    def _mark_first_entries(self) -> None:
        """Mark entries that need no key, sticky entries, and entries with a key in a source."""
        rules = self.rules
        for book in self.books:
            book.mark(book.key_index.always_judged)
            book.mark_identities(self.timers.sticky)
            in_sources, deepest = book.window.search_sources(), book.key_index.deepest
            book.mark_owners(in_sources)
            book.window.reach(max(book.depth, deepest))
            # The cached matches of keys require that all entries of a book search the same
            # messages. If one entry searches more or fewer messages, judge all entries without the
            # cache.
            is_widened = in_sources or deepest > book.depth or rules.min_activations
            if is_widened or not book.depth or self.is_short:
                book.drop_matches()
            else:
                made_for = (book.lorebook, book.rank, book.depth, self.counter, rules)
                book.use_matches(made_for)

    # Step 2: judge the marked entries

    def _find_candidates(self) -> list[Candidate]:
        """Judge the entries that this pass must look at. Return those that may be active."""
        candidates: list[Candidate] = []
        self._now = {}
        for book in self.books:
            view = self._view(book)
            book.mark_owners(book.window.given_up)
            book.marked -= book.final
            matches = book.update_matches(
                self._schedule.number, view, most_judged=self._most - self._judged
            )
            if matches is None:
                book.mark_owners(book.window.fed)
                book.marked -= book.final
            else:
                self._judged += len(matches.judgements)
                candidates += matches.candidates.values()
            for index in sorted(book.marked):
                self._judged += 1
                is_over = self._judged > self._most
                # Constant entries are always judged up to the hard limit `MOST_JUDGED`. All other
                # entries are judged up to the limit `most_woken`, if the rules set one.
                if is_over and not (book.entries[index].constant and self._judged <= MOST_JUDGED):
                    why = f"not judged: the limit of {self._most} entries was reached"
                    book.marked.remove(index)
                    book.report(index, Judgement(False, plain_reason(why)))
                    continue
                judgement = book.judge(index, view)
                if not judgement.is_candidate:
                    book.report(index, judgement)
                    continue
                why = "its content is empty"
                try:
                    one = book.candidate(index, judgement)
                except OutOfWorkError as error:
                    if not self.is_short:
                        raise
                    one, why = None, error.problem
                if one is None:
                    book.report(
                        index, Judgement(False, plain_reason(f"{judgement.reason}, but {why}"))
                    )
                    book.final.add(index)
                else:
                    self._now[book.rank, index] = judgement
                    candidates.append(one)
        return candidates

    def _view(self, book: ActiveBook) -> PassView:
        """Return what judging a book's entries in this pass depends on.

        In a widened pass, first search one more message for keys of the book.
        """
        schedule = self._schedule
        is_widened = schedule.kind == "widened"
        depth = book.depth + schedule.widened
        book.depth_in_pass = depth
        if is_widened:
            book.mark_owners(book.window.reach(depth))
        return PassView(
            window=book.window,
            judged=book.judged,
            kind=schedule.kind,
            level=schedule.level,
            depth=depth,
            recursive=schedule.recursive,
            sees_fed=self._sees_texts(book) and not (is_widened and self._flags.widening_is_fresh),
            rules=self.rules,
            timers=self.timers,
            facts=self.facts,
            replies=self.scan.history.replies,
        )

    def _sees_texts(self, book: ActiveBook) -> bool:
        """True if texts of active entries are searched for keys of this book.

        The book's setting for recursion decides. With SillyTavern's rules, later passes always
        search these texts.
        """
        return book.recursive or self._flags.counts_what_recursed

    # Steps 3 to 5: decide about the candidates by groups, chance and budget

    def _outcome_of(self, candidates: list[Candidate]) -> PassOutcome:
        """Return the decisions about the candidates of an activation pass.

        The decisions of the previous turn are reused if the candidates and all other inputs are
        equal.
        """
        if not candidates:
            return _NOTHING_DECIDED
        number = self._schedule.number
        kept = self.books[0].window.memo.setdefault(_PASSES, {})
        made_for = (
            self.rules,
            self.limit_tokens,
            self.counter,
            self._schedule.kind,
            self._spent,
        )
        last, has_shares = kept.get(number), self._speaker_count > 1
        if last and last.candidates == candidates and last.made_for == made_for and not has_shares:
            return last.outcome
        outcome = self._decide(candidates)
        if not has_shares and all(one.is_steady for one in candidates):
            kept[number] = _KeptPass(made_for, candidates, outcome)
        return outcome

    def _decide(self, candidates: Sequence[Candidate]) -> PassOutcome:
        """Decide which candidates become active: by groups, then by chance, then by the budget."""
        rules, flags, number = self.rules, self._flags, self._schedule.number
        budget, outcome = self._budget(), PassOutcome()
        candidates = in_processing_order(candidates, rules)
        contested = self._contest(candidates, outcome)
        lost = contested.lost
        offered = [one for one in candidates if id(one) not in lost] if lost else candidates
        ordered = by_survival(offered)

        # Most candidates need no roll, belong to no speaker's share, and surely have enough tokens.
        # So charge all of these at once.
        charges = budget.offer_in_a_row(ordered)
        in_a_row = ordered[: len(charges)]
        rulings: dict[int, dict[int, Ruling]] = defaultdict(dict)
        for one, charge in zip(in_a_row, charges, strict=True):
            details = self._details(one, None, _NO_CONTEST) if one.lacking or number > 1 else ()
            rulings[one.rank][one.entry.index] = Ruling(True, details, one.tokens, charge)
        for rank, of_book in rulings.items():
            outcome.rulings[rank].update(of_book)
            outcome.final[rank].update(of_book)
        admitted = set(map(id, in_a_row))

        unlucky: set[int] = set()
        for one in ordered[len(in_a_row) :]:
            chance = one.entry.chance
            roll = None
            if chance < 100 and not (one.sticky or budget.is_closed_to(one)):
                roll = self._roll("chance", one.label, one.book.revision)
                passes = roll * 100 <= chance if flags.chance_is_inclusive else roll * 100 < chance
                if not passes:
                    unlucky.add(id(one))
                    detail = EntryReason(chance_reason, (roll, chance))
                    outcome.rule_finally(one, Ruling(False, (detail,)))
                    continue
            offer = budget.offer(one, speaker=self._speaker(one) if budget.is_shared else None)
            if isinstance(offer, str):
                refused = Ruling(False, (offer,), one.tokens)
                # The budget only shrinks, so a refused entry would be refused again and the
                # decision is final. But SillyTavern counts its budget again in the next pass.
                if flags.counts_what_recursed:
                    outcome.rule(one, refused)
                else:
                    outcome.rule_finally(one, refused)
            else:
                admitted.add(id(one))
                details = self._details(one, roll, contested)
                outcome.rule_finally(one, Ruling(True, details, one.tokens, offer))

        outcome.active = [one for one in offered if id(one) in admitted]
        outcome.remembered = [one for one in outcome.active if one.is_remembered]
        outcome.spent = budget.spent
        if flags.counts_what_recursed:  # SillyTavern also searches texts that did not fit
            passed_on = [one for one in offered if id(one) not in unlucky]
        else:
            passed_on = [one for one in outcome.active if self.books[one.rank].recursive]
        outcome.passed_on = [one for one in passed_on if not one.entry.recursion.prevented]
        return outcome

    def _contest(self, candidates: Sequence[Candidate], outcome: PassOutcome) -> ContestOutcome:
        """Choose winners of inclusion groups, and store the decision about each loser."""
        if not any(one.entry.grouping.names for one in candidates):
            return _NO_CONTEST
        contested = contest_groups(
            candidates,
            rules=self.rules,
            active=self.active,
            roll=lambda name: self._roll("group", name, self._schedule.number),
            score=self._score,
        )
        for one in candidates:
            reason = contested.lost.get(id(one))
            # An entry that lost may lose again in later passes. Keep the reason of its first loss,
            # because that reason names the entry that really won.
            if reason and one.number not in self._lost:
                outcome.rule(one, Ruling(False, (reason,)))
                self._lost.add(one.number)
        return contested

    def _details(
        self, one: Candidate, roll: float | None, contested: ContestOutcome
    ) -> tuple[object, ...]:
        """Return further reasons for the verdict on an admitted entry, such as its roll."""
        schedule = self._schedule
        details: list[object] = []
        if schedule.number > 1:
            details.append(EntryReason(pass_reason, (schedule.number, schedule.kind)))
        if won := contested.won.get(id(one)):
            details.append(won)
        if roll is not None:
            details.append(EntryReason(chance_reason, (roll, one.entry.chance)))
        if one.lacking:
            details.append(EntryReason(containment_in_words, (one.lacking, one.entry.position)))
        return tuple(details)

    def _roll(self, *purpose: object) -> float:
        fixed = self.rules.dice
        return self.dice.roll("lore", *purpose) if fixed is None else fixed

    def _score(self, one: Candidate) -> int:
        """Count the found keys of a candidate, which is its score in inclusion groups."""
        book = self.books[one.rank]
        return count_found_keys(
            one.entry, book.key_index.entry_keys[one.entry.index], self._view(book)
        )

    def _budget(self) -> LoreBudget:
        return LoreBudget(
            self.rules,
            limit_tokens=self.limit_tokens,
            counter=self.counter,
            speakers=self._speaker_count,
            spent=self._spent,
        )

    def _speaker(self, one: Candidate) -> str | None:
        """Return the player who activated an entry; None if no player did.

        If the key is in the text of another entry, return the player who activated that entry.
        """
        index = one.entry.index
        judgement = self._now.get((one.rank, index)) or self.books[one.rank].judgements[index]
        found = judgement.found
        speaker = None
        if found is not None:
            in_text = found.place == FED
            speaker = self._speakers.get(found.of) if in_text else self.scan.speaker(found.place)
        self._speakers[one.label] = speaker
        return speaker

    def _apply(self, outcome: PassOutcome) -> None:
        """Add the decisions of an activation pass to the results of the turn and of its books."""
        self.active += outcome.active
        self.remembered += outcome.remembered
        self._spent = outcome.spent or self._spent
        if self._speaker_count > 1:
            self._speakers.update((one.label, self._speaker(one)) for one in outcome.active)
        for rank, rulings in outcome.rulings.items():
            book, final = self.books[rank], outcome.final.get(rank, set())
            book.rulings.update(rulings)
            book.final |= final
            book.mark(rulings.keys() - final)
        for (rank, index), judgement in self._now.items():
            if index in outcome.rulings.get(rank, ()):
                self.books[rank].judgements[index] = judgement

    # Step 6: prepare the next pass

    def _count_new_texts(self, outcome: PassOutcome) -> int:
        """Count the texts that recursion will search for the first time."""
        if not self._flags.counts_what_recursed:
            return len(outcome.passed_on)  # each entry is admitted only once
        known = len(self._passed_on)
        self._passed_on |= outcome.passed_on_numbers
        return len(self._passed_on) - known

    def _pass_texts_on(self, outcome: PassOutcome) -> None:
        """Let later passes search the texts of new active entries, and prepare the budgets."""
        for book in self.books:
            if self._sees_texts(book):
                book.window.feed(outcome.passed_on_texts)
                book.window.feed_as_one(one.text for one in outcome.passed_on)
        spent = outcome.spent_in_next or self._budget().after(outcome.passed_on)
        if (
            outcome is not _NOTHING_DECIDED
        ):  # all runs share this constant, so it must not be changed
            outcome.spent_in_next = spent
        self._spent = spent


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What happened in an activation pass. This decides which kind of pass comes next."""

    passed_on: int
    """The number of entries whose text recursion will search for the first time."""
    active: int
    """The number of entries that are active so far, over all passes."""
    budget_is_full: bool


class PassSchedule:
    """The current activation pass of a turn, with the rules that choose the next pass.

    Args:
        rules: The rules of activation.
        recursive: True if any book is recursive.
        levels: The delay levels of all entries.
        length: How many messages a widened scan may reach.
    """

    def __init__(
        self,
        rules: ActivationRules,
        *,
        recursive: bool,
        levels: Iterable[int],
        length: int,
    ) -> None:
        self.kind: PassKind = "first"
        self.number = 1
        self.widened = 0
        """By how many messages the scan was widened."""
        self.recursive = recursive
        self._rules = rules
        self._flags = PRESET_FLAGS[rules.rules]
        self._length = min(length, MOST_WIDENED)
        self._levels = sorted(set(levels))[:MOST_LEVELS]
        self.level = self._levels.pop(0) if self._levels else 0
        self._recursions = 0
        self._has_passed_on = False

    def move_on(self, result: PassResult) -> bool:
        """Make the next pass the current one. Return False if there is no next pass."""
        kind = self._next_kind(result)
        if kind is None or self._is_limit_reached(kind):
            return False
        self._has_passed_on = bool(result.passed_on) or self._has_passed_on
        self._recursions += kind == "recursion"
        self.kind = kind
        self.number += 1
        return True

    def _next_kind(self, result: PassResult) -> PassKind | None:
        """Choose the kind of the next activation pass; None if there is none.

        Recursion comes first, then widening, then the next delay level.
        """
        if self.recursive and not result.budget_is_full and not self._is_limit_reached("recursion"):
            if result.passed_on:
                return "recursion"
            # After a widened pass, search the texts of active entries once more. Entries that
            # waited for their delay level may find their keys in those texts now.
            has_texts = (
                self.number > 1  # SillyTavern recurses here even if no pass added a text
                if self._flags.levels_are_walked
                else self._has_passed_on and self.level > 0
            )
            if self.kind == "widened" and has_texts:
                return "recursion"
        lacks_entries = result.active < self._rules.min_activations
        if lacks_entries and not result.budget_is_full and self._can_widen():
            self.widened += 1
            return "widened"
        # Delay levels begin only after a recursion pass, except in the preset `sillytavern`.
        has_begun = self.recursive and self._recursions > 0
        if not self._levels or not (has_begun or self._flags.levels_are_walked):
            return None
        self.level = self._levels.pop(0)
        return "recursion"

    def _can_widen(self) -> bool:
        """True if the scan may be widened by one more message."""
        rules = self._rules
        depth = rules.scan_depth + self.widened
        limit = rules.min_activations_depth_max
        # SillyTavern tests the limit only after widening, so it searches one message more.
        if self._flags.widens_beyond:
            return not (limit and depth > limit) and depth <= self._length
        return not (limit and depth >= limit) and depth < self._length

    def _is_limit_reached(self, kind: PassKind) -> bool:
        """True if the limit of recursion steps forbids another pass of this kind."""
        limit = self._rules.max_recursion_steps
        if self.number >= MOST_PASSES:
            return True
        if self._flags.first_pass_counts:
            return bool(limit and self.number >= limit)
        return bool(limit and kind == "recursion" and self._recursions >= limit)
