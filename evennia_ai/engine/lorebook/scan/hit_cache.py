"""The hits of a book that a conversation keeps: which keys were found in which of its messages.

A message is searched once, when it is new. So the cost of a turn depends on its new messages and
the hits in its window, not on the length of the chat or the size of the book.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.scan.matching import (
    Fold,
    GivenUp,
    KeyTable,
    Scanned,
    Searchable,
    Span,
    searchable,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import TEXT_STEPS, TURN_STEPS
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.time_line import without_time_line

# Numbers of places outside the messages of the history.
EVENT: Final = -1
NOTE: Final = -2
SOURCE: Final = -3
FED: Final = -4
SOMEWHERE: Final = -5


class FoundKey(NamedTuple):
    """The place of a key: a message and the span in it.

    `place` is a message's index in the history or one of the numbers below 0, such as `EVENT`. `of`
    names a text that is no message: the label of an entry, or a source.
    """

    place: int
    span: Span
    of: str = ""


ANYWHERE: Final = FoundKey(SOMEWHERE, Span(0, 0))
"""The place of a key that is always found."""

# By the number of a key, its place.
Places = Mapping[int, FoundKey]


# Texts of entries, each after the label of its entry.
Texts = Sequence[tuple[str, str]]


class Feed(NamedTuple):
    """Texts that were added at once, with the keys in all texts before and after.

    `steps` is how many patterns took in the texts.
    """

    texts: Texts
    before: Places
    after: Places
    steps: int


class FedText(NamedTuple):
    """The text of an active entry, the keys in it, and the steps that patterns took in it."""

    text: str
    places: Places
    steps: int


class HitCache:
    """The hits of one key table in the messages of one conversation.

    The stretch is the range of messages that `reach` was last called for.

    - `said` and `moved` have the last place of each key in the stretch: `moved` in messages about
      somebody who comes or goes, `said` in all others.
    - `changed` are the keys whose place changed since a caller cleared it.
    - `fed` has the text of each entry that was active, by its label, with the keys in it.
    - `feeds` has the texts that were added at once, by their number in a run.
    - `memo` keeps results that depend on these hits.
    """

    def __init__(self, table: KeyTable, *, with_names: bool, at: int) -> None:
        self.table = table
        self.with_names = with_names
        self.memo = Memo()
        self.fed: dict[str, FedText] = {}
        self.feeds: dict[int, Feed] = {}
        self.said: dict[int, FoundKey] = {}
        self.moved: dict[int, FoundKey] = {}
        self.changed: set[int] = set()
        self._hits: dict[int, tuple[bool, Places]] = {}  # with whether the message tells who moves
        self._given_up: dict[int, GivenUp] = {}
        # By index the steps that patterns took in a message; None where no pattern was searched.
        self._steps: dict[int, int | None] = {}
        self._searched = (at, at)  # messages from the one up to the other
        self._stretch = (at, at)

    def reach(
        self, history: History, *, first: int, stop: int, steps: int = TURN_STEPS
    ) -> set[int]:
        """Make the messages from `first` up to `stop` the stretch; return the keys that moved.

        Only messages that enter the stretch or leave it are looked at. Patterns have `steps` in all
        these messages together. The newest messages come first, and patterns are not searched in
        those that are left when the steps are used up.
        """
        if self._search(history, first, stop, steps):
            self._stretch = (-1, -1)  # what is known of the stretch is no longer true
        earlier, self.changed = self.changed, set()
        old_first, old_stop = self._stretch
        if first >= old_stop or stop < old_stop:
            self.changed.update(self.said, self.moved)
            self.said, self.moved = {}, {}
            old_first = old_stop = stop
        for index in range(old_first, first):
            self._leave(index)
        for index in range(old_first - 1, first - 1, -1):
            self._enter_oldest(index)
        for index in range(old_stop, stop):
            self._enter(index)
        self._stretch = first, stop
        fresh, self.changed = self.changed, self.changed | earlier
        return fresh

    def _enter(self, index: int) -> None:
        """Add a message newer than all others: its keys have their last place there."""
        if index in self._hits:
            moves, places = self._hits[index]
            (self.moved if moves else self.said).update(places)
            self.changed.update(places)

    def _enter_oldest(self, index: int) -> None:
        """Add a message older than all others: keys that others have keep their place."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number, found in places.items():
                if number not in newest:
                    newest[number] = found
                    self.changed.add(number)

    def _leave(self, index: int) -> None:
        """Remove the oldest message of the stretch."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number in places:
                if newest[number].place == index:
                    del newest[number]
                    self.changed.add(number)

    def given_up(self, *, first: int, stop: int) -> Iterator[tuple[int, GivenUp]]:
        """Return the messages with given-up patterns, newest first: index, then the patterns."""
        indexes = sorted((i for i in self._given_up if first <= i < stop), reverse=True)
        return ((index, self._given_up[index]) for index in indexes)

    def _search(self, history: History, first: int, stop: int, steps: int) -> bool:
        """Search the messages that are new; forget all others if the stretch does not touch them.

        Return True if patterns are now searched in, or left out of, a message that was known.
        """
        known_first, known_stop = self._searched
        if first > known_stop or stop < known_first:
            known_first = known_stop = first
            self._hits, self._given_up, self._steps = {}, {}, {}
        self._searched = min(known_first, first), max(known_stop, stop)
        if self.table.patterns:
            return self._search_patterns(history, first, stop, steps)
        for index in (*range(known_stop, stop), *range(first, known_first)):
            if history[index].counted:
                self._keep(index, history[index], self.of(history[index]))
        return False

    def _search_patterns(self, history: History, first: int, stop: int, steps: int) -> bool:
        """Search the new messages for patterns, newest first, while steps are left.

        Steps of known messages count as if they were searched now. So the same messages are
        searched in every process, whatever it knows from earlier turns.
        """
        has_changed = False
        for index in range(stop - 1, first - 1, -1):
            message = history[index]
            if not message.counted:
                continue
            is_known = index in self._steps
            known = self._steps.get(index)
            if not is_known or (known is None) is not (steps <= 0):
                has_changed |= is_known
                scanned = self.of(message, steps=TEXT_STEPS if steps > 0 else 0)
                self._keep(index, message, scanned)
                known = self._steps[index] = scanned.steps if steps > 0 else None
            steps -= known or 0
        return has_changed

    def _keep(self, index: int, message: Message, scanned: Scanned) -> None:
        """Keep the result of searching the message of this index."""
        self._hits.pop(index, None)
        self._given_up.pop(index, None)
        if scanned.hits:
            places = {n: FoundKey(index, span) for n, span in scanned.hits.items()}
            self._hits[index] = message.is_movement, places
        if scanned.given_up:
            self._given_up[index] = scanned.given_up

    def of(self, message: Message, *, steps: int = TEXT_STEPS) -> Scanned:
        """Return the keys in one message, and the patterns that were given up there."""
        text = make_searchable(message, self.with_names, self.table.fold)
        return self.table.scanned(text, steps=steps)

    def text_of(self, message: Message) -> str:
        """Return a message as the text that is searched."""
        return make_searchable(message, self.with_names, self.table.fold).written


_HIT_CACHES: Final = Slot[dict[tuple[str, ...], HitCache]]("hit caches")


def hit_cache_of(
    history: History, table: KeyTable, *, of: tuple[str, ...], with_names: bool
) -> HitCache:
    """Return the hits of a book in a conversation; `of` identifies the book."""
    caches = history.memo.setdefault(_HIT_CACHES, {})
    known = caches.get(of)
    if known is None or known.table is not table or known.with_names is not with_names:
        known = caches[of] = HitCache(table, with_names=with_names, at=history.stop)
    return known


MOST_SEARCHABLE: Final = 2048
"""How many messages stay ready to be searched, each eight times as large as its text.

A conversation keeps the hits of its messages. Only a new book, a pattern or recursion searches a
message again.
"""


@lru_cache(maxsize=MOST_SEARCHABLE)
def _searchable(content: str, name: str | None, fold: Fold) -> Searchable:
    return searchable(content, name=name, fold=fold)


def make_searchable(message: Message, with_name: bool, fold: Fold) -> Searchable:
    """Return a message ready to be searched, shared by all books and all NPCs who heard it."""
    said = without_time_line(message.content)
    return _searchable(said, message.name if with_name else None, fold)
