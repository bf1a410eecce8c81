"""What is scanned for keys, and what was found in it.

The window is the newest messages: the pending event first, then the history backwards, records
that injection depth does not count left out. Scanned notes belong to every window that is not
empty; an entry may ask for other sources; texts of active entries join in recursion.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from evennia_ai.lorebook.entry import LoreEntry, SourceName
from evennia_ai.lorebook.scan.key_index import ALWAYS, BookIndex
from evennia_ai.lorebook.scan.matching import (
    ANYWHERE,
    EVENT,
    FED,
    NOTE,
    SOMEWHERE,
    SOURCE,
    FoundKey,
    GivenUp,
    Hits,
    Places,
    Scanned,
    Span,
    hit_cache_of,
)
from evennia_ai.lorebook.scan.regex.pattern import MOST_SEARCHED, Patience, Pattern, SearchedText
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Memo
from evennia_ai.prompt.messages import Message

# So far back at most a message is looked for that mentions an entry.
MOST_LOOKED_BACK: Final = 1000
# What stands before each text where all are searched as one.
_MARK: Final = "\x01"
_NOWHERE: Final = Span(0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What is scanned: the history, the event being answered, and what counts as newest.

    `texts` are scanned notes; `sources` are there for the entries that ask for them by name.
    """

    history: History
    event: Message | None = None
    texts: tuple[str, ...] = ()
    sources: Mapping[SourceName, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """How many messages there are to scan."""
        history = self.history
        return history.counted(history.earlier) + (self.event is not None)

    def newest(self) -> Iterator[tuple[int, Message]]:
        """Index and message, newest first; the event's index is `EVENT`."""
        if self.event is not None:
            yield EVENT, self.event
        history = self.history
        for index in range(history.stop - 1, history.earlier - 1, -1):
            message = history[index]
            if message.counted:
                yield index, message

    def speaker(self, place: int) -> str | None:
        """Who said the message at this place; None where it is nobody but the game and the NPC."""
        if place < EVENT:
            return None
        message = self.event if place == EVENT else self.history[place]
        return message.name or "" if message is not None and message.role == "user" else None


class Window:
    """Where the keys of one book stand in what is scanned; it only ever grows.

    `given_up` says, by the number of a pattern, in which texts it was not looked for to the end.
    """

    def __init__(
        self,
        scan: Scan,
        key_index: BookIndex,
        *,
        of: tuple[str, ...],
        include_names: bool,
        patience: Patience | None = None,
    ) -> None:
        self._scan = scan
        self._key_index = key_index
        self._patience = patience or Patience()
        self.given_up: dict[int, list[tuple[FoundKey, str]]] = {}
        self._hits = hit_cache_of(scan.history, key_index.table, of=of, with_names=include_names)
        self._reached = 0
        self._found: dict[int, tuple[int, FoundKey]] = {}  # with its age in messages
        self._moved: dict[
            int, tuple[int, FoundKey]
        ] = {}  # the same in what tells who comes and goes
        self._heard_moving: dict[int, tuple[int, FoundKey]] = {}  # the newer of both
        self._fed: dict[int, FoundKey] = {}
        self._sources: dict[SourceName, Hits] = {}
        self._texts: list[tuple[str, bool]] = []  # with whether it tells who comes and goes
        self._alone: dict[int, SearchedText] = {}  # the same texts, each by itself
        self._fed_texts: list[str] = []
        self._joined: dict[object, SearchedText] = {}

    @property
    def memo(self) -> Memo:
        """What was made of the hits of this book in this conversation."""
        return self._hits.memo

    def reach(self, depth: int) -> list[int]:
        """Scan the newest `depth` messages, and return the keys that were not found before."""
        fresh: list[int] = []
        if depth <= self._reached:
            return fresh
        scan, history = self._scan, self._scan.history
        is_plain, with_event = history.is_plain, int(scan.event is not None)
        if not self._reached:
            self._add_newest(fresh)
        first = history.newest_from(depth - with_event)
        stop = history.newest_from(max(0, self._reached - with_event))
        newly_found = self._hits.newest(history, first=first, stop=stop, patience=self._patience)
        for index, places in newly_found:
            age = history.stop - index if is_plain else history.counted(index)
            found = self._moved if history[index].is_movement else self._found
            self._add(found, places, age - 1 + with_event, fresh)
        for index, given_up in self._hits.given_up(first=first, stop=stop):
            self._give_up(given_up, FoundKey(index, _NOWHERE), fresh)
        self._reached = depth
        if self._key_index.patterns:
            newest = islice(scan.newest(), depth)
            # The application trims each message before it joins them.
            self._texts = [
                (self._hits.text_of(message).strip(), message.is_movement) for _, message in newest
            ]
        return fresh

    def _add_newest(self, fresh: list[int]) -> None:
        """What counts as newest: the newest message, the event if there is one; then the notes."""
        scan = self._scan
        if not scan.texts and scan.event is None:
            return  # the messages of the history come by themselves
        for index, message in islice(scan.newest(), 1):
            hits, given_up = self._hits.of(message, age=0, patience=self._patience)
            found = self._moved if message.is_movement else self._found
            self._add(found, {n: FoundKey(index, span) for n, span in hits.items()}, 0, fresh)
            if index == EVENT:  # of others it is told with the history
                self._give_up(given_up, FoundKey(EVENT, _NOWHERE), fresh)
        for text in scan.texts:
            hits, given_up = self._in_text(text)
            places = {n: FoundKey(NOTE, span) for n, span in hits.items()}
            self._add(self._found, places, 0, fresh)
            self._give_up(given_up, FoundKey(NOTE, _NOWHERE), fresh)

    def sources(self) -> list[int]:
        """Search the sources that entries of the book ask for; the keys that stand in them."""
        fresh: list[int] = []
        for name in self._key_index.sources:
            text = self._scan.sources.get(name)
            if text:
                self._sources[name], given_up = self._in_text(text)
                fresh += self._sources[name]
                self._give_up(given_up, FoundKey(SOURCE, _NOWHERE, name), fresh)
        return fresh

    def mentions(self, numbers: Collection[int], *, movement: bool) -> Iterator[tuple[int, int]]:
        """Age and place of the messages that have one of these keys, newest first.

        What tells who comes and goes counts only where `movement` says so.
        """
        patterns = [p for number, p in self._key_index.patterns.items() if number in numbers]
        newest = islice(self._scan.newest(), MOST_LOOKED_BACK)
        for age, (place, message) in enumerate(newest):
            if message.is_movement and not movement:
                continue
            hits = self._hits.of(message, age=age, patience=self._patience).hits
            if not hits.keys().isdisjoint(numbers):
                yield age, place
            elif patterns:
                text = self._by_itself(age, self._hits.text_of(message).strip())
                if any(text.place(pattern) for pattern in patterns):
                    yield age, place

    def feed(self, text: str, *, of: str) -> Iterable[int]:
        """Let the text of an active entry be searched; the keys that stand in it."""
        known = self._hits.fed.get(of)
        given_up: list[int] = []
        if known is None or known[0] != text:
            hits, unfound = self._in_text(text)
            known = (text, {number: FoundKey(FED, span, of) for number, span in hits.items()})
            self._give_up(unfound, FoundKey(FED, _NOWHERE, of), given_up)
            if not unfound:
                self._hits.fed[of] = known
        for number, found in known[1].items():
            self._fed.setdefault(number, found)
        return [*known[1], *given_up] if given_up else known[1]

    def feed_as_one(self, text: str) -> None:
        """The texts one pass fed, for patterns that reach over texts."""
        self._fed_texts.append(text)
        self._joined = {}

    def first(
        self, numbers: Sequence[int], entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> tuple[int, FoundKey] | None:
        """The first of these keys that stands where `entry` sees it: its index, and where."""
        in_messages = self._in_messages(entry)
        only_messages = not (self._fed or self._sources or self._key_index.patterns)
        for at, number in enumerate(numbers):
            newest = in_messages.get(number)
            if newest is not None and newest[0] < depth:
                return at, newest[1]
            if not only_messages or number < 0:
                found = self.found(number, entry, depth, sees_fed=sees_fed)
                if found is not None:
                    return at, found
        return None

    def found(
        self, number: int, entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> FoundKey | None:
        """Where the key of this number stands for `entry`, which sees `depth` messages."""
        if number == ALWAYS:
            return ANYWHERE
        newest = self._in_messages(entry).get(number)
        if newest is not None and newest[0] < depth:
            return newest[1]
        if number in self._key_index.patterns:
            return self._of_pattern(number, entry, depth, sees_fed)
        if sees_fed and number in self._fed:
            return self._fed[number]
        return self._in_sources(number, entry) if entry.sources else None

    def unheard(self, numbers: Iterable[int], entry: LoreEntry, depth: int) -> FoundKey | None:
        """Where a key stands in what tells who comes and goes, for an entry that is deaf to it."""
        if not self._moved or entry.hears_movement:
            return None
        stands = (self._moved[number] for number in numbers if number in self._moved)
        return next((found for age, found in stands if age < depth), None)

    def _in_messages(self, entry: LoreEntry) -> Mapping[int, tuple[int, FoundKey]]:
        """The keys in the messages that an entry hears, each where it stands last."""
        if not self._moved or not entry.hears_movement:
            return self._found
        if not self._heard_moving:
            self._heard_moving = self._found | {
                number: newest
                for number, newest in self._moved.items()
                if number not in self._found or newest[0] < self._found[number][0]
            }
        return self._heard_moving

    def _in_sources(self, number: int, entry: LoreEntry) -> FoundKey | None:
        for name in sorted(entry.sources & self._sources.keys()):
            span = self._sources[name].get(number)
            if span is not None:
                return FoundKey(SOURCE, span, name)
        return None

    def _of_pattern(
        self, number: int, entry: LoreEntry, depth: int, sees_fed: bool
    ) -> FoundKey | None:
        """Where a pattern stands in all that an entry sees; a long text may hide it, no message.

        Where the whole was not searched to its end each message is searched by itself, so that what
        one says never keeps the pattern from being found in another.
        """
        if depth <= 0:
            return None
        pattern = self._key_index.patterns[number]
        whole = self._as_one(entry, depth, sees_fed)
        with self._patience.with_text() as seconds:
            whole.go_on(seconds=seconds)
            place = whole.place(pattern)
        if place is not None:
            return FoundKey(SOMEWHERE, Span(*place))
        if pattern in whole.given_up or len(whole.text) > MOST_SEARCHED:
            return self._in_any(number, pattern, entry, depth)
        return None

    def _in_any(
        self, number: int, pattern: Pattern, entry: LoreEntry, depth: int
    ) -> FoundKey | None:
        """Where a pattern stands in one of the messages that an entry sees, newest first."""
        hears = entry.hears_movement
        for age, (text, moves) in enumerate(self._texts[:depth]):
            if moves and not hears:
                continue
            alone = self._by_itself(age, text)
            if place := alone.place(pattern):
                return FoundKey(SOMEWHERE, Span(*place))
            if pattern in alone.given_up:
                place_of_it = next(islice(self._scan.newest(), age, None))[0]
                why = {number: alone.given_up[pattern]}
                self._give_up(why, FoundKey(place_of_it, _NOWHERE), [])
        return None

    def _by_itself(self, age: int, text: str) -> SearchedText:
        """The message of this age by itself, as patterns see it; its time is its own."""
        if age not in self._alone:
            seconds = self._patience.with_message(age)
            self._alone[age] = SearchedText(_MARK + text, seconds=seconds)
        return self._alone[age]

    def _in_text(self, text: str) -> Scanned:
        """What stands in a text that is no message, as far as there is time for patterns."""
        table = self._key_index.table
        if not table.patterns:
            return table.scanned_in(text)
        with self._patience.with_text() as seconds:
            return table.scanned_in(text, seconds=seconds)

    def _give_up(self, given_up: GivenUp, where: FoundKey, fresh: list[int]) -> None:
        """Keep which patterns were given up there; their entries are to be judged, and say so."""
        for number, why in given_up.items():
            places = self.given_up.setdefault(number, [])
            if (where, why) not in places:
                places.append((where, why))
                fresh.append(number)

    def _as_one(self, entry: LoreEntry, depth: int, sees_fed: bool) -> SearchedText:
        """All that an entry sees as one text, newest first (SillyTavern `WorldInfoBuffer.get`)."""
        slot = (min(depth, self._reached), sees_fed, entry.sources, entry.hears_movement)
        if slot not in self._joined:
            hears = entry.hears_movement
            texts = [text for text, moves in self._texts[:depth] if hears or not moves]
            texts += [
                self._scan.sources[name] for name in sorted(entry.sources & self._sources.keys())
            ]
            texts += self._scan.texts
            texts += self._fed_texts if sees_fed else ()
            joined = _MARK + f"\n{_MARK}".join(texts)
            self._joined[slot] = SearchedText(joined)
        return self._joined[slot]

    def _add(
        self, known: dict[int, tuple[int, FoundKey]], places: Places, age: int, fresh: list[int]
    ) -> None:
        for number, found in places.items():
            if number not in known:
                known[number] = (age, found)
                fresh.append(number)
        self._heard_moving = {}
