"""Key matching: which keys of a book stand in a text and where, and the hits that are kept.

All keys of a book are looked for together (`shelves`). A text is asked for its words once, so the
cost does not depend on how many keys there are. Texts are matched one by one: a key never reaches
over two messages.

A message is searched once, when it is new; what was found in it is kept with the conversation. So
a turn costs its new messages and the hits in its window, however long the chat and large the book.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Final, NamedTuple

from evennia_ai.lorebook.scan.regex.pattern import TEXT_SECONDS, Patience, Pattern, SearchedText
from evennia_ai.lorebook.scan.shelves import Key, Shelves
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Memo, Slot
from evennia_ai.prompt.messages import Message

_MOST_KNOWN, _MOST_BEGUN = 8192, 64


class Span(NamedTuple):
    """Where a key was found; code points of the message's content.

    `start` is negative where it was found in the speaker's name in front of the content.
    """

    start: int
    end: int


# Number of a key in its table -> its first place.
Hits = Mapping[int, Span]
# Number of a pattern that was not looked for to the end -> why.
GivenUp = Mapping[int, str]
_NO_HITS: Final[Hits] = {}
_NONE_GIVEN_UP: Final[GivenUp] = {}


class Scanned(NamedTuple):
    """What was found in one text, and what was given up there."""

    hits: Hits
    given_up: GivenUp = _NONE_GIVEN_UP


@dataclass(slots=True)
class Searchable:
    """A text to search: as written, folded, and for each folded character where it comes from.

    `places` is None where folding left all characters where they were; `lead` is the length of
    the speaker's name in front of the content. Its words are found once, for all tables.
    """

    written: str
    folded: str
    places: tuple[int, ...] | None
    lead: int
    _words: dict[object, frozenset[str]] = field(default_factory=dict)

    def words(self, text: str, split: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """The words of `text`, which is one of its two texts, or what else `split` makes of it."""
        known = self._words.get((split, text is self.written))
        if known is None:
            known = self._words[split, text is self.written] = frozenset(split(text))
        return known

    def span(self, haystack: str, at: int, end: int) -> Span:
        """Where a stretch of `haystack`, which is one of its two texts, stands as written."""
        if haystack is not self.written and self.places is not None:
            at, end = self.places[at], self.places[end - 1] + 1
        return Span(at - self.lead, end - self.lead)


# Takes the case out of a text.
Fold = Callable[[str], str]


def searchable(content: str, *, name: str | None = None, fold: Fold = str.casefold) -> Searchable:
    """A text ready to be searched, with the speaker's name in front if there is one."""
    lead = f"{name}: " if name else ""
    written = lead + content
    folded = fold(written)
    places = None
    if len(folded) != len(written):  # one more for the end
        places = (*(i for i, char in enumerate(written) for _ in fold(char)), len(written))
    return Searchable(written, folded, places, len(lead))


class KeyTable:
    """All keys of a book, looked for together; a key's number is its place in `keys`.

    What it found in a text stays right for ever, because both are immutable, and is remembered
    here by the text: a line that thirty NPCs heard is scanned once. `patterns` are regular
    expressions by number; `fold` is how the keys lost their case, and the texts must.
    """

    __slots__ = ("_begun", "_folded", "_known", "_written", "fold", "patterns")

    def __init__(
        self,
        keys: Iterable[tuple[int, Key]],
        *,
        patterns: Mapping[int, Pattern] | None = None,
        fold: Fold = str.casefold,
    ) -> None:
        self.fold = fold
        folded: list[tuple[int, Key]] = []
        written: list[tuple[int, Key]] = []
        for one in keys:
            (written if one[1].sensitive else folded).append(one)
        self._folded = Shelves(folded)
        self._written = Shelves(written)
        self.patterns: Mapping[int, Pattern] = patterns or {}
        self._known: dict[tuple[str, int], Scanned] = {}
        self._begun: dict[tuple[str, int], SearchedText] = {}

    def hits(self, text: Searchable) -> Hits:
        """Each key that stands in `text`, with its first place."""
        return self.scanned(text).hits

    def scanned(self, text: Searchable, *, seconds: float = TEXT_SECONDS) -> Scanned:
        """The same with what was given up there; all patterns together have so many seconds."""
        known = self._known.get((text.written, text.lead))
        return self._search(text, seconds) if known is None else known

    def scanned_in(self, text: str, *, seconds: float = TEXT_SECONDS) -> Scanned:
        """The same for a text that nobody speaks; it is made ready only if it is new."""
        known = self._known.get((text, 0))
        return known or self.scanned(searchable(text, fold=self.fold), seconds=seconds)

    def _search(self, text: Searchable, seconds: float) -> Scanned:
        """Look for everything; where there was no time for every pattern, the next call goes on."""
        found: dict[int, Span] = {}
        for shelves, haystack in ((self._folded, text.folded), (self._written, text.written)):
            for number, at, end in shelves.places(haystack, partial(text.words, haystack)):
                found[number] = text.span(haystack, at, end)
        slot = (text.written, text.lead)
        if not self.patterns:
            return self._remembered(slot, Scanned(found or _NO_HITS))
        searched = self._begun.pop(slot, None) or SearchedText(text.written)
        searched.go_on(seconds=seconds)
        for number, pattern in self.patterns.items():
            place = searched.place(pattern)
            if place is not None:
                found[number] = Span(place[0] - text.lead, place[1] - text.lead)
        why = searched.given_up
        given_up = {n: why[pattern] for n, pattern in self.patterns.items() if pattern in why}
        made = Scanned(found or _NO_HITS, given_up or _NONE_GIVEN_UP)
        if searched.is_whole:
            return self._remembered(slot, made)
        if len(self._begun) >= _MOST_BEGUN:
            self._begun = {}
        self._begun[slot] = searched
        return made

    def _remembered(self, slot: tuple[str, int], scanned: Scanned) -> Scanned:
        if len(self._known) >= _MOST_KNOWN:
            self._known = {}
        self._known[slot] = scanned
        return scanned


class FoundKey(NamedTuple):
    """Where a key was found: which message, the span in it.

    `place` is a message's index in the history or one of the numbers below 0 of `window`; `of`
    names the text where it is no message: the label of an entry, a source.
    """

    place: int
    span: Span
    of: str = ""


# Number of a key -> where it was found.
Places = Mapping[int, FoundKey]


class HitCache:
    """The hits of one table in the messages of one conversation, as far back as was asked for.

    `memo` keeps what was made of them; `fed`, by the label of an entry that was active, its text
    and the hits in it.
    """

    def __init__(self, table: KeyTable, *, with_names: bool, at: int) -> None:
        self.table = table
        self.with_names = with_names
        self.memo = Memo()
        self.fed: dict[str, tuple[str, Places]] = {}
        self._begin(at)

    def _begin(self, at: int) -> None:
        self._first = at  # messages from here up to _stop were searched
        self._stop = at
        self._indexes: list[int] = []
        self._places: list[Places] = []
        self._given_up: dict[int, GivenUp] = {}

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
        indexes = sorted((i for i in self._given_up if first <= i < stop), reverse=True)
        return ((index, self._given_up[index]) for index in indexes)

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
                found.append((index, {n: FoundKey(index, span) for n, span in hits.items()}))
            if given_up:
                self._given_up[index] = given_up
        return found

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
    return _searchable(message.content, message.name if with_name else None, fold)


# Numbers of places that are no message of the history.
EVENT: Final = -1


NOTE: Final = -2


SOURCE: Final = -3


FED: Final = -4


SOMEWHERE: Final = -5


ANYWHERE: Final = FoundKey(SOMEWHERE, Span(0, 0))
