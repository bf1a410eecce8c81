"""The result of lore activation: the active entries, and a verdict on every entry of every book.

A verdict is rendered as text only when somebody reads it, so results of large books are cheap. Most
entries of a large book have no key in the conversation. Their verdicts are made once for each book
and scan depth. One `Unmatched` represents all entries that are inactive for the same reason.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import islice, repeat
from typing import Final, TypeVar

from evennia_ai.engine.lorebook.activation.active_books import ActiveBook
from evennia_ai.engine.lorebook.activation.candidate import (
    NO_CANDIDATE,
    ActiveEntry,
    Judgement,
    Ruling,
)
from evennia_ai.engine.lorebook.activation.judging import PassView
from evennia_ai.engine.lorebook.activation.reasons import EntryReason, given_up_reason, name_message
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState, Timers
from evennia_ai.engine.lorebook.book import Unmatched, pack_uids, uids_of
from evennia_ai.engine.lorebook.scan.window import MOST_PLACES, Scan, Window
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.trace import Called, Stage, Verdict

# One cached verdict: the judgement and the ruling on an entry, the names of messages and texts that
# the verdict mentions, and the verdict. The verdict is reused while the other three are equal.
_KnownVerdict = tuple[Judgement, Ruling, object, Verdict]
_LAST_VERDICTS: Final = Slot[dict[int, _KnownVerdict]]("last verdicts")


class Activation:
    """The active entries of a turn, in the order of their activation, and all verdicts.

    `after` is the state of the timers that the caller stores if the prompt is really sent.
    """

    def __init__(
        self,
        entries: tuple[ActiveEntry, ...] = (),
        *,
        after: LoreState = NO_STATE,
        active_books: Sequence[ActiveBook] = (),
        called: Called = name_message,
        work: int = 0,
    ) -> None:
        self.entries = entries
        self.work = work
        """The work of expanding macros in entry texts, including texts of inactive entries."""
        self.after = after
        self._books = active_books
        self._called = called

    def calling(self, called: Called) -> "Activation":
        """Return a copy whose verdicts call each message what `called` returns for its index."""
        books, work = self._books, self.work
        return Activation(
            self.entries, after=self.after, active_books=books, called=called, work=work
        )

    def with_entries(self, entries: tuple[ActiveEntry, ...]) -> "Activation":
        """Return a copy with other active entries, and with the same verdicts."""
        return Activation(
            entries,
            after=self.after,
            active_books=self._books,
            called=self._called,
            work=self.work,
        )

    @cached_property
    def causes(self) -> dict[str, str]:
        """Map the identity of each active entry to the reason why the entry is active."""
        return {
            book.identities[index]: book.judgements[index].cause
            for book in self._books
            for index, ruling in book.rulings.items()
            if ruling.kept
        }

    @cached_property
    def judgements(self) -> dict[str, Judgement]:
        """Map the origin of each active entry to the judgement that made it active."""
        return {
            book.entries[index].origin: book.judgements[index]
            for book in self._books
            for index, ruling in book.rulings.items()
            if ruling.kept
        }

    @cached_property
    def touched(self) -> tuple[Verdict, ...]:
        """The verdicts on the entries that were judged one by one in this turn."""
        return tuple([known[-1] for book in self._books for known in self._known(book).values()])

    @cached_property
    def silent(self) -> tuple[Unmatched, ...]:
        """The entries with no key in the conversation, grouped by book and shared reason."""
        return tuple(
            group
            for book in self._books
            for group in _kept_with_index(book, _UNMATCHED, _group_unmatched)
        )

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """A verdict on every entry of every book, in the order of the books and their entries."""
        made: list[Verdict] = []
        for book in self._books:
            verdicts = _kept_with_index(book, _VERDICTS, _unmatched_verdicts).copy()
            for index, known in self._known(book).items():
                verdicts[index] = known[-1]
            made += verdicts
        return tuple(made)

    def _known(self, book: ActiveBook) -> dict[int, _KnownVerdict]:
        """Return the verdicts on the judged entries of a book, by index of the entry.

        A verdict of the previous turn is reused if it would say the same again. Most verdicts are.
        """
        last = book.window.memo.get(_LAST_VERDICTS) or {}
        judgements, rulings, known = book.judgements, book.rulings, dict[int, _KnownVerdict]()
        entries, is_plain = book.entries, self._called is name_message
        says_more = not is_plain or bool(book.window.given_up)
        for index in last if last.keys() == judgements.keys() else sorted(judgements):
            judgement, ruling = judgements[index], rulings.get(index, NO_CANDIDATE)
            more: object = None
            if says_more:
                place = -1 if judgement.found is None else judgement.found.place
                more = self._called(place) if place >= 0 else "", _given_up(book, index)
            one = last.get(index)
            if not one or one[0] is not judgement or one[1] is not ruling or one[2] != more:
                cause = judgement.cause
                if not is_plain:
                    cause = str(judgement.reason.calling(self._called))
                reason = ruling.render(cause)
                if says_more:
                    places = (place.calling(self._called) for place in _given_up(book, index))
                    reason += "".join(f"; {place}" for place in places)
                verdict = Verdict(
                    "activate",
                    entries[index].origin,
                    ruling.kept,
                    reason,
                    ruling.tokens,
                    cause if ruling.kept else None,
                )
                one = judgement, ruling, more, verdict
            known[index] = one
        book.window.memo[_LAST_VERDICTS] = known
        return known


def _given_up(book: ActiveBook, index: int) -> tuple[EntryReason, ...]:
    """Return why searches for an entry's regular expressions were given up, and in which texts."""
    places = book.window.given_up
    if not places:
        return ()
    key_index = book.key_index
    reasons = (
        EntryReason(given_up_reason, (key_index.pattern_of(number).written, where, why))
        for number in dict.fromkeys(key_index.entry_keys[index].numbers)
        for where, why in places.get(number, ())
    )
    return tuple(islice(reasons, MOST_PLACES))


# Verdicts on entries that have no key in the conversation ("unmatched" entries)

_Made = TypeVar("_Made")
# The reasons in verdicts on unmatched entries depend only on the scan depth, on recursion, and on
# the number of regular expressions that cannot run. So these three are the key of the cache.
_State = tuple[int, bool, int]
_VERDICTS: Final = Slot[dict[_State, list[Verdict]]]("verdicts on unmatched entries")
_UNMATCHED: Final = Slot[dict[_State, tuple[Unmatched, ...]]]("unmatched entries")
# A scan that is widened for minimum activations passes through many depths, and each cached result
# of a large book is large. So the cache of a book is cleared when it has this many results.
_MOST_KEPT: Final = 16
_NOTHING: Final = Scan(history=History())


def _kept_with_index(
    book: ActiveBook, slot: Slot[dict[_State, _Made]], make: Callable[[ActiveBook], _Made]
) -> _Made:
    """Return the result of `make`; it is cached in the index of the book for recent scan depths."""
    known = book.key_index.memo.setdefault(slot, {})
    state = (book.depth_in_pass, book.recursive, book.key_index.troubles)
    # Read the cache only once: another thread may clear it between two reads.
    made = known.get(state)
    if made is None:
        if len(known) >= _MOST_KEPT:
            known.clear()
        made = known[state] = make(book)
    return made


def _unmatched_verdicts(book: ActiveBook) -> list[Verdict]:
    """Return the verdict that each entry of a book gets if the conversation contains no key."""
    stage: Stage = "activate"
    origins = [f"lore:{label}" for label in book.labels]
    return list(map(Verdict, repeat(stage), origins, repeat(False), _unmatched_reasons(book)))


def _group_unmatched(book: ActiveBook) -> tuple[Unmatched, ...]:
    """Group the entries of a book by the reason they get if the conversation contains no key."""
    by_reason: dict[str, list[str]] = {}
    for uid, reason in zip(uids_of(book.lorebook), _unmatched_reasons(book), strict=True):
        by_reason.setdefault(reason, []).append(uid)
    return tuple(
        Unmatched(book.lorebook.label, reason, pack_uids(uids))
        for reason, uids in by_reason.items()
    )


def _unmatched_reasons(book: ActiveBook) -> list[str]:
    """Judge the entries of a book in an empty conversation; return the reasons in order."""
    view = PassView(
        window=Window(_NOTHING, book.key_index, of=("unmatched",), include_names=False),
        judged={},
        kind="first",
        level=0,
        depth=book.depth_in_pass,
        recursive=False,
        sees_fed=book.recursive,
        rules=book.rules,
        timers=Timers(NO_STATE, clock=Clock(), rules=book.rules, entry_of=lambda _: None),
        facts={},
        replies=0,
    )
    # All entries in `alike` are inactive for the same reason, so only one of them is judged.
    alike = book.key_index.alike
    reason = str(book.judge(next(iter(alike)), view).reason) if alike else ""
    reasons = [reason] * len(book.entries)
    for index in {*range(len(reasons))} - alike:
        reasons[index] = str(book.judge(index, view).reason)
    return reasons
