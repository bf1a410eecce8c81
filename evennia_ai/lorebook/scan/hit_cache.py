"""The hits of a book that are kept: which of its keys stand in which messages of one conversation.

A message is searched once, when it is new; what was found in it is kept with the conversation. So
a turn costs its new messages and the hits in its window, however long the chat and large the book.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.lorebook.scan.matching import (
    Fold,
    GivenUp,
    KeyTable,
    Scanned,
    Searchable,
    Span,
    searchable,
)
from evennia_ai.lorebook.scan.regex.pattern import Patience
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Memo, Slot
from evennia_ai.prompt.messages import Message


class Found(NamedTuple):
    """Where a key was found: which message, the span in it.

    `place` is a message's index in the history or one of the numbers below 0 of `window`; `of`
    names the text where it is no message: the label of an entry, a source.
    """

    place: int
    span: Span
    of: str = ""


# Number of a key -> where it was found.
Places = Mapping[int, Found]


class HitCache:
    """The hits of one table in the messages of one conversation, as far back as was asked for.

    `memo` keeps what was made of them; `fed`, by the label of an entry that was active, its text
    and the hits in it.
    """

    __slots__ = (
        "_first",
        "_given_up",
        "_indexes",
        "_places",
        "_stop",
        "_table",
        "_with_names",
        "fed",
        "memo",
    )

    def __init__(self, table: KeyTable, *, with_names: bool, at: int) -> None:
        self._table = table
        self._with_names = with_names
        self.memo = Memo()
        self.fed: dict[str, tuple[str, Places]] = {}
        self._begin(at)

    def _begin(self, at: int) -> None:
        self._first = at  # messages from here up to _stop were searched
        self._stop = at
        self._indexes: list[int] = []
        self._places: list[Places] = []
        self._given_up: dict[int, GivenUp] = {}

    def is_of(self, table: KeyTable, *, with_names: bool) -> bool:
        """Whether its hits were found with this table."""
        return self._table is table and self._with_names is with_names

    def newest(
        self, history: History, *, first: int, stop: int, patience: Patience
    ) -> Iterator[tuple[int, Places]]:
        """Index and hits of the messages from `first` up to `stop` that have any, newest first."""
        self._search(history, first, stop, patience)
        at = len(self._indexes)
        if at and self._indexes[-1] >= stop:
            at = bisect_left(self._indexes, stop)
        while at and self._indexes[at - 1] >= first:
            at -= 1
            yield self._indexes[at], self._places[at]

    def given_up(self, *, first: int, stop: int) -> Iterator[tuple[int, GivenUp]]:
        """Index of those messages in which patterns were given up, newest first, with which."""
        for index in sorted(self._given_up, reverse=True):
            if first <= index < stop:
                yield index, self._given_up[index]

    def _search(self, history: History, first: int, stop: int, patience: Patience) -> None:
        """Search what is new; a stretch that does not touch what was searched begins anew."""
        if first > self._stop or stop < self._first:
            self._begin(first)
        newer = self._hits(history, self._stop, stop, patience)
        for index, places in newer:
            self._indexes.append(index)
            self._places.append(places)
        self._stop = max(self._stop, stop)
        older = self._hits(history, first, self._first, patience)
        if older:
            self._indexes[:0] = [index for index, _ in older]
            self._places[:0] = [places for _, places in older]
        self._first = min(self._first, first)

    def _hits(
        self, history: History, first: int, stop: int, patience: Patience
    ) -> list[tuple[int, Places]]:
        found: list[tuple[int, Places]] = []
        for index in range(first, stop):
            message = history[index]
            if not message.counted:
                continue
            hits, given_up = self.of(message, age=history.stop - 1 - index, patience=patience)
            if hits:
                found.append((index, {n: Found(index, span) for n, span in hits.items()}))
            if given_up:
                self._given_up[index] = given_up
        return found

    def of(self, message: Message, *, age: int, patience: Patience) -> Scanned:
        """What stands in one message, and which patterns were given up there."""
        text = searched(message, self._with_names, self._table.fold)
        if not self._table.patterns:
            return self._table.scanned(text)
        return self._table.scanned(text, seconds=patience.with_message(age))

    def text_of(self, message: Message) -> str:
        """A message as it is searched."""
        return searched(message, self._with_names, self._table.fold).written


_HIT_CACHES: Final = Slot[dict[tuple[str, ...], HitCache]]("hit caches")


def hit_cache_of(
    history: History, table: KeyTable, *, of: tuple[str, ...], with_names: bool
) -> HitCache:
    """The hits in this conversation of the book that `of` names among all there are."""
    caches = history.memo.setdefault(_HIT_CACHES, {})
    known = caches.get(of)
    if known is None or not known.is_of(table, with_names=with_names):
        known = caches[of] = HitCache(table, with_names=with_names, at=history.stop)
    return known


@lru_cache(maxsize=8)
def _searchable(with_name: bool, fold: Fold) -> Slot[Searchable]:
    return Slot(f"searchable, {with_name}, {fold.__name__}")


def searched(message: Message, with_name: bool, fold: Fold) -> Searchable:
    """A message ready to be searched; kept with it, for all books."""
    slot = _searchable(with_name, fold)
    known = message.memo.get(slot)
    if known is not None:
        return known
    made = searchable(message.content, name=message.name if with_name else None, fold=fold)
    message.memo[slot] = made
    return made


# Numbers of places that are no message of the history.
EVENT: Final = -1


NOTE: Final = -2


SOURCE: Final = -3


FED: Final = -4


SOMEWHERE: Final = -5


ANYWHERE: Final = Found(SOMEWHERE, Span(0, 0))
