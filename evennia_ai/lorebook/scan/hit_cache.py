"""The hits of a book that are kept with a conversation: what was found in which of its messages.

A message is searched once, when it is new. So a turn costs its new messages and the hits in its
window, however long the chat and large the book.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from evennia_ai.prompt.time_line import without_time_line

# Numbers of places that are no message of the history.
EVENT: Final = -1
NOTE: Final = -2
SOURCE: Final = -3
FED: Final = -4
SOMEWHERE: Final = -5


class FoundKey(NamedTuple):
    """Where a key was found: which message, the span in it.

    `place` is a message's index in the history or one of the numbers below 0 of `window`; `of`
    names the text where it is no message: the label of an entry, a source.
    """

    place: int
    span: Span
    of: str = ""


ANYWHERE: Final = FoundKey(SOMEWHERE, Span(0, 0))
"""Where a key stands that is always there."""

# Number of a key -> where it was found.
Places = Mapping[int, FoundKey]


# Texts, each with the label of its entry.
Texts = Sequence[tuple[str, str]]


class Feed(NamedTuple):
    """Texts that were fed at once, the keys that stood in those before, and in all of them."""

    texts: Texts
    before: Places
    after: Places


class HitCache:
    """The hits of one table in the messages of one conversation, as far back as was asked for.

    `said` and `moved` have each key where it stands last in the stretch of messages that was asked
    for last: in what was said, and in what tells who comes and goes. `changed` are the keys whose
    place is another than when somebody cleared it. `memo` keeps what was made of all that; `fed`,
    by the label of an entry that was active, its text and the hits in it; `feeds`, by their number
    in a run, the texts of many of them.
    """

    def __init__(self, table: KeyTable, *, with_names: bool, at: int) -> None:
        self.table = table
        self.with_names = with_names
        self.memo = Memo()
        self.fed: dict[str, tuple[str, Places]] = {}
        self.feeds: dict[int, Feed] = {}
        self.said: dict[int, FoundKey] = {}
        self.moved: dict[int, FoundKey] = {}
        self.changed: set[int] = set()
        self._hits: dict[int, tuple[bool, Places]] = {}  # with whether the message tells who moves
        self._given_up: dict[int, GivenUp] = {}
        self._searched = (at, at)  # messages from the one up to the other
        self._stretch = (at, at)

    def reach(self, history: History, *, first: int, stop: int, patience: Patience) -> set[int]:
        """Make the messages from `first` up to `stop` the stretch; which keys stand elsewhere now.

        Only the messages that come to it or leave it are looked at.
        """
        self._search(history, first, stop, patience)
        earlier, self.changed = self.changed, set()
        old_first, old_stop = self._stretch
        if first >= old_stop or stop < old_stop:
            self.changed.update(self.said, self.moved)
            self.said, self.moved = {}, {}
            old_first = old_stop = stop
        for index in range(old_first, first):
            self._leave(index)
        for index in range(old_first - 1, first - 1, -1):
            self._enter_behind(index)
        for index in range(old_stop, stop):
            self._enter(index)
        self._stretch = first, stop
        fresh, self.changed = self.changed, self.changed | earlier
        return fresh

    def _enter(self, index: int) -> None:
        """A message is new: its keys stand there last."""
        if index in self._hits:
            moves, places = self._hits[index]
            (self.moved if moves else self.said).update(places)
            self.changed.update(places)

    def _enter_behind(self, index: int) -> None:
        """A message is older than all others: its keys stand there if in none of them."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number, found in places.items():
                if number not in newest:
                    newest[number] = found
                    self.changed.add(number)

    def _leave(self, index: int) -> None:
        """The oldest message is not looked at any more."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number in places:
                if newest[number].place == index:
                    del newest[number]
                    self.changed.add(number)

    def given_up(self, *, first: int, stop: int) -> Iterator[tuple[int, GivenUp]]:
        """Index of the messages in which patterns were given up, newest first, with which."""
        indexes = sorted((i for i in self._given_up if first <= i < stop), reverse=True)
        return ((index, self._given_up[index]) for index in indexes)

    def _search(self, history: History, first: int, stop: int, patience: Patience) -> None:
        """Search what is new; a stretch that does not touch what was searched begins anew."""
        known_first, known_stop = self._searched
        if first > known_stop or stop < known_first:
            known_first = known_stop = first
            self._hits, self._given_up = {}, {}
        self._search_all(history, known_stop, stop, patience)
        self._search_all(history, first, known_first, patience)
        self._searched = min(known_first, first), max(known_stop, stop)

    def _search_all(self, history: History, first: int, stop: int, patience: Patience) -> None:
        for index in range(first, stop):
            message = history[index]
            if not message.counted:
                continue
            hits, given_up = self.of(message, age=history.stop - 1 - index, patience=patience)
            if hits:
                places = {n: FoundKey(index, span) for n, span in hits.items()}
                self._hits[index] = message.is_movement, places
            if given_up:
                self._given_up[index] = given_up

    def of(self, message: Message, *, age: int, patience: Patience) -> Scanned:
        """What stands in one message, and which patterns were given up there."""
        text = searched(message, self.with_names, self.table.fold)
        if not self.table.patterns:
            return self.table.scanned(text)
        return self.table.scanned(text, seconds=patience.with_message(age))

    def text_of(self, message: Message) -> str:
        """A message as it is searched."""
        return searched(message, self.with_names, self.table.fold).written


_HIT_CACHES: Final = Slot[dict[tuple[str, ...], HitCache]]("hit caches")


def hit_cache_of(
    history: History, table: KeyTable, *, of: tuple[str, ...], with_names: bool
) -> HitCache:
    """The hits in this conversation of the book that `of` names among all there are."""
    caches = history.memo.setdefault(_HIT_CACHES, {})
    known = caches.get(of)
    if known is None or known.table is not table or known.with_names is not with_names:
        known = caches[of] = HitCache(table, with_names=with_names, at=history.stop)
    return known


MOST_SEARCHABLE: Final = 2048
"""Messages that are kept ready to be searched, each eight times as large as its text.

What was found in one is kept with its conversation; only a book that is new to it, a pattern and
recursion look at a message again.
"""


@lru_cache(maxsize=MOST_SEARCHABLE)
def _searchable(content: str, name: str | None, fold: Fold) -> Searchable:
    return searchable(content, name=name, fold=fold)


def searched(message: Message, with_name: bool, fold: Fold) -> Searchable:
    """A message ready to be searched, for all books and all who heard it."""
    said = without_time_line(message.content)
    return _searchable(said, message.name if with_name else None, fold)
