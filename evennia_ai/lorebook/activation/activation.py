"""Activation: which entries are active, what they say, where they ask to stand, why others are not.

Pure. The books are looked at together, in passes (`run`). In each one every entry that something
concerns is judged (`judging`), groups choose (`groups`), chance is rolled once, and what is left
competes for the lore budget (`lore_budget`). Each entry of each book gets one verdict; the words of
it are put together when they are read. Nothing here costs by the size of a book: verdicts on the
entries that nothing concerned, in a large book nearly all of them, are made once for a book and a
scan depth, and told in bulk.

An active entry stands where it asks to, or where its book's grants let it stand. One that asks to
stand where it is spoken of gets the depth of its message and goes the way of everything that has a
depth: the kept history clamps it, order decides at one place, and a tool's result stays with its
call. So it moves with the message, and one whose message was cut away stands at the top of the
history.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final, TypeVar

from evennia_ai.lorebook.activation.activation_run import (
    ActivationRun,
    EntryDecision,
    EntryRef,
    RunInputs,
)
from evennia_ai.lorebook.activation.active_books import ActiveBook, active_books_of, entry_finder
from evennia_ai.lorebook.activation.candidate import (
    ActiveEntry,
    Candidate,
    EntryReason,
    message_called,
)
from evennia_ai.lorebook.activation.judging import PassView, judge
from evennia_ai.lorebook.activation.timers import NO_STATE, Clock, LoreState, Timers, is_remembered
from evennia_ai.lorebook.book import CONTAINED_PRIORITY, Lorebook, Unmatched, is_moved, packed
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.lorebook.entry import IN_HISTORY
from evennia_ai.lorebook.rules import PRESET_FLAGS, ActivationRules
from evennia_ai.lorebook.scan.window import Scan, Window
from evennia_ai.prompt.components import ALL_GRANTS, DEFAULT_ORDER, MAX_DEPTH, Grants
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Called, Verdict

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
    if state not in known:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[state] = make(book)
    return known[state]


def _verdicts(book: ActiveBook) -> list[Verdict]:
    """The verdict on each entry of the book where nothing concerns it."""
    return [
        Verdict(stage="activate", item=f"lore:{label}", kept=False, reason=reason)
        for label, reason in zip(book.labels, _reasons(book), strict=True)
    ]


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
    found = zip(book.entries, book.key_index.entry_keys, book.identities, strict=True)
    return [
        str(judge(entry, keys, view, identity=identity).reason) for entry, keys, identity in found
    ]


_NO_FACTS: Final[Facts] = {}
_START: Final = Clock()


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
        decisions: Mapping[EntryRef, EntryDecision] | None = None,
        called: Called = message_called,
    ) -> None:
        self.entries = entries
        self.after = after
        self._books = active_books
        self._decisions = decisions or {}
        self._called = called

    def calling(self, called: Called) -> "Activation":
        """The same, whose verdicts call messages as `called` says."""
        return Activation(
            self.entries,
            after=self.after,
            active_books=self._books,
            decisions=self._decisions,
            called=called,
        )

    @cached_property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on entries that something in the conversation concerned."""
        return tuple(self._verdict(ref) for ref in sorted(self._decisions))

    @cached_property
    def silent(self) -> tuple[Unmatched, ...]:
        """All other entries, told in bulk: those of one book that share a reason."""
        return tuple(one for book in self._books for one in _once(book, _UNMATCHED, _unmatched))

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every entry of every book, in the order of the books and their entries."""
        made = [_once(book, _VERDICTS, _verdicts).copy() for book in self._books]
        for rank, index in self._decisions:
            made[rank][index] = self._verdict((rank, index))
        return tuple([verdict for book in made for verdict in book])

    def _verdict(self, ref: EntryRef) -> Verdict:
        """The verdict on one entry: the last one again where it decided the same."""
        decision = self._decisions[ref]
        first = decision.reasons[0]
        if not isinstance(first, Candidate):
            return self._worded(ref, decision)
        known = (decision, self._where(first), self._given_up(ref))
        if first.told is None or first.told[0] != known:
            first.told = (known, self._worded(ref, decision))
        return first.told[1]

    def _given_up(self, ref: EntryRef) -> tuple[EntryReason, ...]:
        """Which of the entry's patterns were given up in which texts, the first few of them."""
        book, index = self._books[ref[0]], ref[1]
        return book.given_up(index) if book.window.given_up else ()

    def _where(self, one: Candidate) -> str:
        """What the message is called in which its key was found, "" where that was in none."""
        found = one.judgement.found
        return "" if found is None or found.place < 0 else self._called(found.place)

    def _said(self, reason: object) -> str:
        if isinstance(reason, Candidate):
            reason = reason.judgement.reason
        return str(reason.calling(self._called) if isinstance(reason, EntryReason) else reason)

    def _worded(self, ref: EntryRef, decision: EntryDecision) -> Verdict:
        rank, index = ref
        cause = self._said(decision.reasons[0])
        return Verdict(
            stage="activate",
            item=self._books[rank].entries[index].origin,
            kept=decision.kept,
            reason="; ".join(
                [cause, *map(self._said, (*decision.reasons[1:], *self._given_up(ref)))]
            ),
            tokens=decision.tokens,
            cause=cause if decision.kept else None,
        )


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
) -> Activation:
    """What the books give for this scan; `limit_tokens` is the limit of the whole prompt.

    `state` is what the turn before left. Equal arguments give equal results.
    """
    active_books = active_books_of(books, scan, rules=rules, values=values, dice=dice)
    before, entry_of = NO_STATE if rules.dry_run else state, entry_finder(active_books)
    timers = Timers(before, clock=clock, rules=rules, entry_of=entry_of)
    run = ActivationRun(
        active_books,
        RunInputs(
            scan=scan,
            rules=rules,
            timers=timers,
            facts=facts,
            values=values,
            dice=dice,
            counter=counter,
            limit_tokens=limit_tokens,
        ),
    )
    run.make_passes()
    remembered = {one.identity: one.entry for one in run.active if is_remembered(one.entry)}
    return Activation(
        _placed(run.active, active_books, scan.history, rules=rules),
        after=state if rules.dry_run else timers.after(remembered),
        active_books=active_books,
        decisions=run.decisions,
    )


# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def _placed(
    active: Iterable[Candidate],
    books: Sequence[ActiveBook],
    history: History,
    *,
    rules: ActivationRules,
) -> tuple[ActiveEntry, ...]:
    """The active entries with their places, in the order of their activation."""
    entries = tuple([_active(one, books[one.rank], history) for one in active])
    return _as_the_application_does(entries) if PRESET_FLAGS[rules.rules].ties_reversed else entries


def _active(one: Candidate, book: ActiveBook, history: History) -> ActiveEntry:
    """The entry for the prompt: the same object while nothing about it changed."""
    if one.active is None:
        one.active = _contained(_made(one), one.book.grants)
    if one.entry.mention is None:
        return one.active
    depth, beside = book.spot_of(one.entry, history)
    if (one.active.depth, one.active.beside) != (depth, beside):
        one.active = replace(one.active, depth=depth, beside=beside)
    return one.active


def _contained(entry: ActiveEntry, grants: Grants) -> ActiveEntry:
    """The entry where its book's grants let it stand: the same one where they let it be."""
    if grants == ALL_GRANTS:
        return entry
    if is_moved(entry.position, grants):
        entry = replace(
            entry, position="depth", depth=MAX_DEPTH, from_oldest=False, outlet="", anchor=None
        )
    if "lore_budget" not in grants:
        entry = replace(entry, priority=min(entry.priority, CONTAINED_PRIORITY))
    return entry if "roles" in grants else replace(entry, role="user", keeps_role=True)


def _made(one: Candidate) -> ActiveEntry:
    """The entry where it asks to stand."""
    book, entry = one.book, one.entry
    return ActiveEntry(
        origin=entry.origin,
        label=one.label,
        book=book.label,
        uid=entry.uid,
        name=entry.name,
        text=one.text,
        tokens=one.tokens,
        position=entry.position,
        depth=entry.depth,
        from_oldest=entry.from_oldest,
        outlet=entry.outlet,
        anchor=entry.anchor,
        role=entry.role,
        order=entry.order,
        stands=(entry.order, f"{one.rank:04}:{entry.index:06}"),
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        cause=str(one),
        identity=one.identity,
        frozen=book.mode == "frozen",
    )


def _as_the_application_does(entries: Sequence[ActiveEntry]) -> tuple[ActiveEntry, ...]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first.
    """
    by_order = sorted(entries, key=lambda entry: -entry.order)  # stable: as they were activated
    last = len(by_order)
    stands = {
        id(entry): _application_place(entry, number, last - number)
        for number, entry in enumerate(by_order)
    }
    return tuple(replace(entry, stands=stands[id(entry)]) for entry in entries)


def _application_place(entry: ActiveEntry, falling: int, rising: int) -> tuple[float, str]:
    if entry.position in ("examples_before", "outlet"):
        return (falling, "")
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising:06}")
    return (rising, "")
