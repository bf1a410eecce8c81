"""The hit cache: which keys of a lorebook were found in which messages of a conversation.

Each message is searched only once, when it is new. So the time of a turn does not grow with the
length of the chat or the size of the book. It grows with the number of new messages and of keys
found in the newest messages.
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
    prepare_text,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import TEXT_STEPS, TURN_STEPS
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.prompt.messages import Message, without_time_line

# Values of `FoundKey.place` for keys that were found outside the messages of the history.
EVENT: Final = -1
NOTE: Final = -2
SOURCE: Final = -3
FED: Final = -4
SOMEWHERE: Final = -5


class FoundKey(NamedTuple):
    """The place where a key of an entry was found: a text and the characters in it.

    `place` is the index of a message in the history, or a negative number such as `EVENT`. `of`
    names the text if it is not a message: the label of an entry, or the name of a source.
    """

    place: int
    span: Span
    of: str = ""


ANYWHERE: Final = FoundKey(SOMEWHERE, Span(0, 0))
"""The place that is given for a key that always counts as found."""

# The place where each key was found, by number of the key.
Places = Mapping[int, FoundKey]


# Entries with their texts: pairs of a label and a text.
Texts = Sequence[tuple[str, str]]


class Feed(NamedTuple):
    """Texts of active entries that were searched together, and the keys known before and after.

    `steps` is the number of steps that the search for regular expressions took in these texts.
    """

    texts: Texts
    before: Places
    after: Places
    steps: int


class FedText(NamedTuple):
    """The text of an active entry, the keys in it, and the steps of its regular expressions."""

    text: str
    places: Places
    steps: int


class HitCache:
    """The keys of one lorebook that were found in the messages of one conversation.

    The last call of `reach` gives a range of messages, to which `said` and `moved` refer.

    - `moved` has the last place of each key in messages about a character who arrives or leaves.
      `said` has the last place of each key in other messages.
    - `changed` has the keys whose place has changed since a caller last cleared this set.
    - `fed` has, by label, the text of each entry that was active, with the keys found in it.
    - `feeds` has the texts that were searched together, by their number in the run.
    - `memo` caches results that depend on these keys.
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
        # For each message with keys: True if it is about an arrival or departure, and the places.
        self._hits: dict[int, tuple[bool, Places]] = {}
        self._given_up: dict[int, GivenUp] = {}
        # How many steps regular expressions took in each message, by index of the message. None
        # means that the message was not searched for them.
        self._steps: dict[int, int | None] = {}
        # The index of the first message that was searched, and the index after the last one.
        self._searched = (at, at)
        self._stretch = (at, at)

    def reach(
        self, history: History, *, first: int, stop: int, steps: int = TURN_STEPS
    ) -> set[int]:
        """Search messages from `first` up to `stop`; return the keys whose last place changed.

        Only messages that enter or leave this range are processed. Regular expressions may take
        `steps` steps in all messages together, beginning with the newest message. When all steps
        are used up, older messages are not searched for regular expressions.
        """
        if self._search(history, first, stop, steps):
            self._stretch = (
                -1,
                -1,
            )  # keys were found in messages that were searched before, so start again
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
        """Add the next newer message to the range. It becomes the last place of the keys in it."""
        if index in self._hits:
            moves, places = self._hits[index]
            (self.moved if moves else self.said).update(places)
            self.changed.update(places)

    def _enter_oldest(self, index: int) -> None:
        """Add the next older message to the range. Keys also in a newer message keep that place."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number, found in places.items():
                if number not in newest:
                    newest[number] = found
                    self.changed.add(number)

    def _leave(self, index: int) -> None:
        """Remove the oldest message from the range, and all keys whose last place it was."""
        if index in self._hits:
            moves, places = self._hits[index]
            newest = self.moved if moves else self.said
            for number in places:
                if newest[number].place == index:
                    del newest[number]
                    self.changed.add(number)

    def given_up(self, *, first: int, stop: int) -> Iterator[tuple[int, GivenUp]]:
        """Yield the index and the regular expressions given up in each message, newest first."""
        indexes = sorted((i for i in self._given_up if first <= i < stop), reverse=True)
        return ((index, self._given_up[index]) for index in indexes)

    def _search(self, history: History, first: int, stop: int, steps: int) -> bool:
        """Search new messages, and forget all known ones if the new range is not next to theirs.

        Returns True if a known message is now searched for regular expressions and was not before,
        or the other way round.
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
                self._keep(index, history[index], self.scan_message(history[index]))
        return False

    def _search_patterns(self, history: History, first: int, stop: int, steps: int) -> bool:
        """Search new messages for regular expressions, newest first, while steps are left.

        Known messages use up steps as if they were searched now. So every process searches the same
        messages, whatever it has cached from earlier turns.
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
                scanned = self.scan_message(message, steps=TEXT_STEPS if steps > 0 else 0)
                self._keep(index, message, scanned)
                known = self._steps[index] = scanned.steps if steps > 0 else None
            steps -= known or 0
        return has_changed

    def _keep(self, index: int, message: Message, scanned: Scanned) -> None:
        """Cache the keys that were found in the message with this index."""
        self._hits.pop(index, None)
        self._given_up.pop(index, None)
        if scanned.hits:
            places = {n: FoundKey(index, span) for n, span in scanned.hits.items()}
            self._hits[index] = message.is_movement, places
        if scanned.given_up:
            self._given_up[index] = scanned.given_up

    def scan_message(self, message: Message, *, steps: int = TEXT_STEPS) -> Scanned:
        """Search one message; return its keys and the regular expressions given up in it."""
        text = make_searchable(message, self.with_names, self.table.fold)
        return self.table.scan(text, steps=steps)

    def text_of(self, message: Message) -> str:
        """Return the text to search of a message, with its speaker in front if names count."""
        return make_searchable(message, self.with_names, self.table.fold).written


_HIT_CACHES: Final = Slot[dict[tuple[str, ...], HitCache]]("hit caches")


def hit_cache_of(
    history: History, table: KeyTable, *, of: tuple[str, ...], with_names: bool
) -> HitCache:
    """Return the hit cache of a lorebook in a conversation. `of` identifies the book."""
    caches = history.memo.setdefault(_HIT_CACHES, {})
    known = caches.get(of)
    if known is None or known.table is not table or known.with_names is not with_names:
        known = caches[of] = HitCache(table, with_names=with_names, at=history.stop)
    return known


MOST_SEARCHABLE: Final = 2048
"""How many messages are cached as prepared for search. Each takes eight times the size of its text.

A message is searched again only for a new book, for a regular expression or in recursion. Otherwise
the keys found in it are already cached.
"""


@lru_cache(maxsize=MOST_SEARCHABLE)
def _searchable(content: str, name: str | None, fold: Fold) -> Searchable:
    return prepare_text(content, name=name, fold=fold)


def make_searchable(message: Message, with_name: bool, fold: Fold) -> Searchable:
    """Return a message prepared for search. All books, and all NPCs who heard it, share it."""
    said = without_time_line(message.content)
    return _searchable(said, message.name if with_name else None, fold)
