"""One build: pass after pass adds to what is active, and nothing is taken away again.

In each pass the entries that something concerns are judged, groups choose among those that are
awake, chance is rolled, and what is left competes for the budget. What becomes active passes its
text on to the next pass.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, NamedTuple

from evennia_ai.lorebook import mentions, reasons
from evennia_ai.lorebook.allotment import Allotment, processing, survival
from evennia_ai.lorebook.awake import Awake
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.lorebook.containment import missing, told
from evennia_ai.lorebook.entries import Mention
from evennia_ai.lorebook.groups import Outcome, contest
from evennia_ai.lorebook.hearing import Found
from evennia_ai.lorebook.judging import Judgement, Sight, judge, score
from evennia_ai.lorebook.passes import Course, Gain
from evennia_ai.lorebook.reasons import Reason
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scanning import FED, Scan
from evennia_ai.lorebook.shelves import Shelf
from evennia_ai.lorebook.timers import Timers
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.grants import ALL_GRANTS
from evennia_ai.prompt.hot import hot_value
from evennia_ai.prompt.tokens import TokenCounter

# However the rules are set, a build ends: no more entries than this are judged, pass for pass.
MOST_JUDGED: Final = 20_000
# An entry of a build: the rank of its book, its index in it.
Spot = tuple[int, int]


_survival: Final = attrgetter("survival")


class Decision(NamedTuple):
    """What became of an entry that something concerned: the last word, with its details."""

    kept: bool
    reasons: tuple[object, ...]
    tokens: int = 0


@hot_value
class Setting:
    """What a build is made with, beside the books."""

    scan: Scan
    rules: ActivationRules
    timers: Timers
    facts: Facts
    values: Mapping[str, str]
    dice: Dice
    counter: TokenCounter
    limit_tokens: int


class Build:
    """One build in the making; `run` it once, then read `active` and `decisions`."""

    def __init__(self, shelves: Sequence[Shelf], setting: Setting) -> None:
        self.active: list[Awake] = []
        self.decisions: dict[Spot, Decision] = {}
        self._shelves = shelves
        self._setting = setting
        self._rules: ActivationRules = setting.rules
        self._settled: set[Spot] = set()
        self._passed_on: set[Spot] = set()
        self._lost: set[Spot] = set()
        self._speakers: dict[str, str | None] = {}
        self._judged = 0
        self._most = setting.rules.most_woken or MOST_JUDGED
        told = f"not looked at: more than {self._most} entries were asked"
        self._overlooked = Decision(False, (told,))
        self._course = Course(
            setting.rules,
            recursive=any(shelf.recursive for shelf in shelves),
            levels=(level for shelf in shelves for level in shelf.levels),
            length=setting.scan.length if setting.rules.min_activations else 0,
        )
        self._allotment = Allotment(
            setting.rules,
            limit_tokens=setting.limit_tokens,
            counter=setting.counter,
            speakers=self._count_speakers(),
        )

    def run(self) -> None:
        """Make all passes."""
        self._open()
        while True:
            passed_on = self._admit(self._awake())
            gain = Gain(
                passed_on=len({one.spot for one in passed_on} - self._passed_on),
                active=len(self.active),
                budget_is_full=self._allotment.overflowed,
            )
            if not self._course.moves_on(gain):
                return
            self._passed_on.update(one.spot for one in passed_on)
            self._pass_on(passed_on)

    def spot_beside(self, one: Awake) -> mentions.Spot:
        """Where an active entry stands that asks for the message that has its key."""
        shelf, entry = self._shelves[one.rank], one.entry
        return mentions.spot_of(
            entry.mention or Mention(),
            shelf.scanner.wanted[entry.index].keys,
            shelf.window,
            self._setting.scan.history,
            depth=shelf.seen if entry.scan_depth is None else entry.scan_depth,
            movement=entry.hears_movement,
        )

    def _open(self) -> None:
        """Ask for what the conversation concerns, for what stays, and for what asks for itself."""
        for shelf in self._shelves:
            shelf.ask(shelf.scanner.asked)
            shelf.ask_marked(self._setting.timers.sticky)
            shelf.ask_owners(shelf.window.sources())
            shelf.ask_owners(shelf.window.reach(max(shelf.depth, shelf.scanner.deepest)))

    def _awake(self) -> list[Awake]:
        """The entries that this pass wakes, in processing order."""
        awake: list[Awake] = []
        settled = self._settled
        for shelf in self._shelves:
            sight, rank = self._sight(shelf), shelf.rank
            for index in sorted(shelf.asked):
                if settled and (rank, index) in settled:
                    shelf.asked.remove(index)
                    continue
                found = self._judgement(shelf, index, sight)
                if found is None:
                    shelf.asked.remove(index)
                    self.decisions[rank, index] = self._overlooked
                    continue
                if not found.awake:
                    self.decisions[rank, index] = Decision(False, (found.reason,))
                elif (one := self._with_text(shelf, index, found)) is not None:
                    awake.append(one)
        awake.sort(key=processing(self._rules))
        return awake

    def _sight(self, shelf: Shelf) -> Sight:
        setting, course = self._setting, self._course
        depth = shelf.depth + course.widened
        shelf.seen = depth
        if course.kind == "widened":
            shelf.ask_owners(shelf.window.reach(depth))
        is_fresh = course.kind == "widened" and self._rules.manner.widening_is_fresh
        return Sight(
            window=shelf.window,
            kind=course.kind,
            level=course.level,
            depth=depth,
            recursive=course.recursive,
            sees_fed=self._is_fed(shelf) and not is_fresh,
            rules=self._rules,
            timers=setting.timers,
            facts=setting.facts,
            replies=setting.scan.history.replies,
        )

    def _judgement(self, shelf: Shelf, index: int, sight: Sight) -> Judgement | None:
        """The judgement on an entry; None where too many were judged already."""
        entry = shelf.book.entries[index]
        self._judged += 1
        if self._judged > self._most and not (entry.constant and self._judged <= MOST_JUDGED):
            return None
        return judge(entry, shelf.scanner.wanted[index], sight, mark=shelf.marks[index])

    def _with_text(self, shelf: Shelf, index: int, found: Judgement) -> Awake | None:
        """The entry with its text; None where it has none and that makes it silent."""
        counter, rank = self._setting.counter, shelf.rank
        known = shelf.window.awake.get(index)
        if not isinstance(known, Awake) or not known.is_of(found, rank, counter):
            known = None
        elif known.is_fed and known.speaker != self._speaker(found.found):
            known = None  # somebody else woke the entry that wakes it
        if known is not None and known.is_constant_text:
            return known
        text, tokens = shelf.text(index, self._setting.values, self._setting.dice, counter)
        if not text.strip() and not self._rules.manner.empty_is_active:
            why = Decision(False, (f"{found.reason}, but its content is empty",))
            self._settle((rank, index), why)
            return None
        if known is not None and known.text == text:
            return known
        made = shelf.window.awake[index] = self._made(shelf, index, found, text, tokens)
        return made

    def _made(self, shelf: Shelf, index: int, found: Judgement, text: str, tokens: int) -> Awake:
        entry, place = shelf.book.entries[index], shelf.place(shelf.book.entries[index])
        return Awake(
            place=place,
            survival=survival(
                entry,
                place,
                vouched="lore_budget" in shelf.book.grants,
                sticky=found.sticky,
                rules=self._rules,
            ),
            rank=shelf.rank,
            book=shelf.book,
            entry=entry,
            label=shelf.labels[index],
            mark=shelf.marks[index],
            judgement=found,
            rests=shelf.marks[index] in self._setting.timers.resting,
            text=text,
            is_constant_text=not entry.template.reads,
            tokens=tokens,
            counter=self._setting.counter,
            speaker=self._speaker(found.found),
            is_lasting=not entry.timing.cooldown,  # with one, whether it rests may change
        )

    def _admit(self, awake: Sequence[Awake]) -> list[Awake]:
        """Let groups, chance and the budget decide; the entries that pass their text on."""
        if not awake:
            return []
        outcome = self._contest(awake)
        lost = outcome.lost
        offered = [one for one in awake if id(one) not in lost] if lost else awake
        admitted: set[int] = set()
        unlucky: set[int] = set()
        for one in sorted(offered, key=_survival):
            roll = self._rolled(one)
            if roll is not None and not self._passes(one, roll):
                unlucky.add(id(one))
                chance = Reason(reasons.rolled, (roll, one.entry.chance))
                self._settle(one.spot, Decision(False, (one, chance)))
            elif self._is_admitted(one, roll, outcome):
                admitted.add(id(one))
        self.active += [one for one in offered if id(one) in admitted]
        if self._rules.manner.counts_what_recursed:  # what had no room is passed on as well
            return [o for o in offered if id(o) not in unlucky and not o.entry.recursion.prevented]
        return [o for o in offered if id(o) in admitted and self._may_feed(o)]

    def _contest(self, awake: Sequence[Awake]) -> Outcome:
        """The groups' choice; who lost may come back in a later pass."""
        if not any(one.entry.grouping.names for one in awake):
            return Outcome({}, {})
        outcome = contest(
            awake,
            rules=self._rules,
            active=self.active,
            roll=lambda name: self._roll("group", name, self._course.number),
            score=self._score,
        )
        for one in awake:
            why = outcome.lost.get(id(one))
            if why and one.spot not in self._lost:  # how it first lost says more than that it did
                self.decisions[one.spot] = Decision(False, (one, why))
                self._lost.add(one.spot)
        return outcome

    def _is_admitted(self, one: Awake, roll: float | None, outcome: Outcome) -> bool:
        charge = self._allotment.offer(one)
        if isinstance(charge, str):
            no = Decision(False, (one, charge), one.tokens)
            # Room only gets less: who had none has none later, unless texts are counted anew.
            if self._rules.manner.counts_what_recursed:
                self.decisions[one.spot] = no
            else:
                self._settle(one.spot, no)
            return False
        said = (one, *self._details(one, roll, outcome), charge)
        self._settle(one.spot, Decision(True, said, one.tokens))
        if self._allotment.is_shared:
            self._speakers[one.label] = one.speaker
        return True

    def _details(self, one: Awake, roll: float | None, outcome: Outcome) -> Sequence[object]:
        """What is to be said of an admitted entry beside its cause and what it cost."""
        is_first = self._course.number == 1
        is_free = one.book.grants == ALL_GRANTS
        if is_first and roll is None and not outcome.won and is_free:
            return ()
        details: list[object] = []
        if not is_first:
            details.append(Reason(reasons.in_pass, (self._course.number, self._course.kind)))
        if won := outcome.won.get(id(one)):
            details.append(won)
        if roll is not None:
            details.append(Reason(reasons.rolled, (roll, one.entry.chance)))
        if lacking := () if is_free else missing(one.entry, one.book.grants):
            details.append(Reason(told, (lacking, one.entry.position)))
        return details

    def _pass_on(self, passed_on: Sequence[Awake]) -> None:
        """Let the texts be searched in the passes to come."""
        for shelf in self._shelves:
            if self._is_fed(shelf):
                for one in passed_on:
                    shelf.ask_owners(shelf.window.feed(one.searched, of=one.label))
                shelf.window.feed_as_one("\n".join(one.text for one in passed_on))
        self._allotment.next_pass([one.text for one in passed_on])

    def _is_fed(self, shelf: Shelf) -> bool:
        """Whether texts of entries reach this book; the application lets them, in later passes."""
        return shelf.recursive or self._rules.manner.counts_what_recursed

    def _may_feed(self, one: Awake) -> bool:
        return self._shelves[one.rank].recursive and not one.entry.recursion.prevented

    def _rolled(self, one: Awake) -> float | None:
        """The roll of an entry that leaves it to chance and has one; one roll a build."""
        if one.entry.chance >= 100 or one.sticky or self._allotment.is_closed_to(one):
            return None
        return self._roll("chance", one.label, one.book.revision)

    def _passes(self, one: Awake, roll: float) -> bool:
        chance = one.entry.chance
        if self._rules.manner.chance_is_inclusive:
            return roll * 100 <= chance
        return roll * 100 < chance

    def _roll(self, *what: object) -> float:
        fixed = self._rules.dice
        return self._setting.dice.roll("lore", *what) if fixed is None else fixed

    def _score(self, one: Awake) -> int:
        shelf = self._shelves[one.rank]
        return score(one.entry, shelf.scanner.wanted[one.entry.index], self._sight(shelf))

    def _settle(self, spot: Spot, decision: Decision) -> None:
        """The last word on an entry: it is not asked again."""
        self.decisions[spot] = decision
        self._settled.add(spot)

    def _speaker(self, found: Found | None) -> str | None:
        """Who woke an entry: who said the key, or who woke the entry whose text has it."""
        if found is None:
            return None
        if found.place == FED:
            return self._speakers.get(found.of)
        return self._setting.scan.speaker(found.place)

    def _count_speakers(self) -> int:
        """How many people spoke in what is scanned, where their shares count."""
        rules = self._rules
        if rules.speaker_share_percent >= 100 and not rules.speaker_matches:
            return 0
        depth = max((shelf.depth for shelf in self._shelves), default=0)
        messages = islice(self._setting.scan.newest(), depth)
        return len({message.name for _, message in messages if message.role == "user"})
