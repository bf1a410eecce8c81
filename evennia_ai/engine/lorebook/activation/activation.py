"""Activation: which entries are active, what they say, where they ask to stand, why others are not.

Pure. The books are looked at together, in passes (`run`). In each one every entry that something
concerns is judged (`judging`), groups choose (`groups`), chance is rolled once, and what is left
competes for the lore budget (`lore_budget`). Each entry of each book gets one verdict; the words of
it are put together when they are read. Nothing here costs by the size of a book: verdicts on the
entries that nothing concerned, in a large book nearly all of them, are made once for a book and a
scan depth, and told in bulk.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat
from typing import Final, TypeVar

from evennia_ai.engine.lorebook.activation.activation_run import ActivationRun, RunInputs
from evennia_ai.engine.lorebook.activation.active_books import (
    ActiveBook,
    active_books_of,
    entry_finder,
)
from evennia_ai.engine.lorebook.activation.candidate import (
    NOT_WOKEN,
    ActiveEntry,
    Judgement,
    Ruling,
    message_called,
)
from evennia_ai.engine.lorebook.activation.judging import PassView, judge
from evennia_ai.engine.lorebook.activation.placed_entries import placed
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, Timers
from evennia_ai.engine.lorebook.book import Lorebook, Unmatched, packed
from evennia_ai.engine.lorebook.conditions import Facts
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan, Window
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.templates.work import LORE_WORK, Meter, OutOfWorkError
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Called, Stage, Verdict

_NOTHING: Final = Scan(history=History())
# Widened scans have many depths, and a large book has many verdicts.
_MOST_KEPT: Final = 16
_Made = TypeVar("_Made")
# By scan depth, whether there is recursion, and how many patterns cannot run.
_State = tuple[int, bool, int]
_VERDICTS: Final = Slot[dict[_State, list[Verdict]]]("verdicts on unmatched entries")
_UNMATCHED: Final = Slot[dict[_State, tuple[Unmatched, ...]]]("unmatched entries")


def _once(
    book: ActiveBook, slot: Slot[dict[_State, _Made]], make: Callable[[ActiveBook], _Made]
) -> _Made:
    """What `make` gives, kept with the index for the scan depths that were asked for last."""
    known = book.key_index.memo.setdefault(slot, {})
    state = (book.seen, book.recursive, book.key_index.troubles)
    made = known.get(state)  # of another thread's too, which may clear what is kept
    if made is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        made = known[state] = make(book)
    return made


def _verdicts(book: ActiveBook) -> list[Verdict]:
    """The verdict on each entry of the book where nothing concerns it."""
    stage: Stage = "activate"
    origins = [entry.origin for entry in book.entries]
    return list(map(Verdict, repeat(stage), origins, repeat(False), _reasons(book)))


def _unmatched(book: ActiveBook) -> tuple[Unmatched, ...]:
    """The same in bulk."""
    by_reason: dict[str, list[str]] = {}
    for entry, reason in zip(book.entries, _reasons(book), strict=True):
        by_reason.setdefault(reason, []).append(entry.uid)
    return tuple(
        Unmatched(book.lorebook.label, reason, packed(uids)) for reason, uids in by_reason.items()
    )


def _reasons(book: ActiveBook) -> list[str]:
    view = PassView(
        window=Window(_NOTHING, book.key_index, of=("unmatched",), include_names=False),
        judged={},
        kind="first",
        level=0,
        depth=book.seen,
        recursive=False,
        sees_fed=book.recursive,
        rules=book.rules,
        timers=Timers(NO_STATE, clock=Clock(), rules=book.rules, entry_of=lambda _: None),
        facts={},
        replies=0,
    )

    def reason(index: int) -> str:
        keys, identity = book.key_index.entry_keys[index], book.identities[index]
        return str(judge(book.entries[index], keys, view, identity=identity).reason)

    alike = book.key_index.alike
    reasons = [reason(next(iter(alike))) if alike else ""] * len(book.entries)
    for index in {*range(len(reasons))} - alike:
        reasons[index] = reason(index)
    return reasons


_NO_FACTS: Final[Facts] = {}
_START: Final = Clock()


# What was told of an entry: how it was judged, what was ruled, what else there was to say (how its
# message is called, what was given up), and the verdict that says so.
_Told = tuple[Judgement, Ruling, object, Verdict]
_TOLD: Final = Slot[dict[int, _Told]]("told")


class Activation:
    """The entries that go into the prompt, in the order of their activation, and all verdicts.

    `after` is what lore remembers once this prompt is really sent.
    """

    def __init__(
        self,
        entries: tuple[ActiveEntry, ...] = (),
        *,
        after: LoreState = NO_STATE,
        active_books: Sequence[ActiveBook] = (),
        called: Called = message_called,
        work: int = 0,
    ) -> None:
        self.entries = entries
        self.work = work
        """What filling in the texts of entries took, those among them that are not active."""
        self.after = after
        self._books = active_books
        self._called = called

    def calling(self, called: Called) -> "Activation":
        """The same, whose verdicts call messages as `called` says."""
        books, work = self._books, self.work
        return Activation(
            self.entries, after=self.after, active_books=books, called=called, work=work
        )

    @cached_property
    def causes(self) -> dict[str, str]:
        """What woke each active entry, by its identity; messages are called by their number."""
        return {
            book.identities[index]: book.judgements[index].cause
            for book in self._books
            for index, ruling in book.rulings.items()
            if ruling.kept
        }

    @cached_property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on entries that something in the conversation concerned."""
        return tuple([told[-1] for book in self._books for told in self._told(book).values()])

    @cached_property
    def silent(self) -> tuple[Unmatched, ...]:
        """All other entries, told in bulk: those of one book that share a reason."""
        return tuple(one for book in self._books for one in _once(book, _UNMATCHED, _unmatched))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every entry of every book, in the order of the books and their entries."""
        made: list[Verdict] = []
        for book in self._books:
            verdicts = _once(book, _VERDICTS, _verdicts).copy()
            for index, told in self._told(book).items():
                verdicts[index] = told[-1]
            made += verdicts
        return tuple(made)

    def _told(self, book: ActiveBook) -> dict[int, _Told]:
        """What is to be told of the touched entries, by their index.

        What was told last is not put in words anew: of a thousand entries most say the same again.
        """
        last = book.window.memo.get(_TOLD) or {}
        judgements, rulings, told = book.judgements, book.rulings, dict[int, _Told]()
        entries, is_plain = book.entries, self._called is message_called
        says_more = not is_plain or bool(book.window.given_up)
        for index in last if last.keys() == judgements.keys() else sorted(judgements):
            judgement, ruling = judgements[index], rulings.get(index, NOT_WOKEN)
            more = self._more(book, index, judgement) if says_more else None
            one = last.get(index)
            if not one or one[0] is not judgement or one[1] is not ruling or one[2] != more:
                cause = judgement.cause if is_plain else self._cause(judgement)
                reason = ruling.said_after(cause)
                if says_more:
                    reason += self._given_up(book, index)
                verdict = Verdict(
                    "activate",
                    entries[index].origin,
                    ruling.kept,
                    reason,
                    ruling.tokens,
                    cause if ruling.kept else None,
                )
                one = judgement, ruling, more, verdict
            told[index] = one
        book.window.memo[_TOLD] = told
        return told

    def _more(self, book: ActiveBook, index: int, judgement: Judgement) -> object:
        """What else a verdict says: how its message is called, and what was given up."""
        place = -1 if judgement.found is None else judgement.found.place
        return self._called(place) if place >= 0 else "", book.given_up(index)

    def _cause(self, judgement: Judgement) -> str:
        return str(judgement.reason.calling(self._called))

    def _given_up(self, book: ActiveBook, index: int) -> str:
        given_up = (one.calling(self._called) for one in book.given_up(index))
        return "".join(f"; {one}" for one in given_up)


def activate(
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
    """What the books give for this scan; `limit_tokens` is the limit of the whole prompt.

    `state` is what the turn before left, `work` what filling in the texts of entries may take.
    Equal arguments give equal results.
    """
    books = tuple(books)
    for is_short in (False, True):
        active_books = active_books_of(books, scan, rules=rules, values=values, dice=dice)
        before, entry_of = NO_STATE if rules.dry_run else state, entry_finder(active_books)
        timers = Timers(before, clock=clock, rules=rules, entry_of=entry_of)
        inputs = RunInputs(
            scan=scan,
            rules=rules,
            timers=timers,
            facts=facts,
            values=values,
            dice=dice,
            counter=counter,
            limit_tokens=limit_tokens,
            meter=Meter(work),
            is_short=is_short,
        )
        run = ActivationRun(active_books, inputs)
        try:
            run.make_passes()
            break
        except OutOfWorkError:
            for book in active_books:
                book.forget_followed()
    remembered = {one.identity: one.entry for one in run.remembered}
    return Activation(
        placed(run.active, active_books, scan.history, rules=rules),
        after=state if rules.dry_run else timers.after(remembered),
        active_books=active_books,
        work=inputs.meter.spent,
    )
