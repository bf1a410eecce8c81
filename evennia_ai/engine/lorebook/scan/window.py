"""The window of a scan: the texts that are searched for keys, and the keys found in them.

The window has the newest messages: the pending event first, then the history backwards, without
records that injection depth does not count. Scanned notes belong to every window that is not empty.
An entry may ask for other sources. In recursion the texts of active entries join.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from evennia_ai.engine.lorebook.entry import LoreEntry, SourceName
from evennia_ai.engine.lorebook.scan.hit_cache import (
    ANYWHERE,
    EVENT,
    FED,
    NOTE,
    SOMEWHERE,
    SOURCE,
    FedText,
    Feed,
    FoundKey,
    Places,
    Texts,
    hit_cache_of,
)
from evennia_ai.engine.lorebook.scan.key_index import ALWAYS, BookIndex
from evennia_ai.engine.lorebook.scan.matching import GivenUp, Hits, Scanned, Span
from evennia_ai.engine.lorebook.scan.regex.pattern import (
    TEXT_STEPS,
    TURN_STEPS,
    Pattern,
    PatternHits,
    search_patterns,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message

# How far back a message that mentions an entry is searched.
MOST_LOOKED_BACK: Final = 1000
# How many texts in which a pattern was given up are reported.
MOST_PLACES: Final = 4
# SillyTavern puts this mark before each text when it searches all as one.
_MARK: Final = "\x01"
_NOWHERE: Final = Span(0, 0)
_NONE_FED: Final[Places] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The texts of a scan: the history, the event being answered, notes and sources.

    `texts` are scanned notes; they count as newest. `sources` are for entries that ask for them by
    name.
    """

    history: History
    event: Message | None = None
    texts: tuple[str, ...] = ()
    sources: Mapping[SourceName, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of messages to scan."""
        history = self.history
        return history.counted(history.earlier) + (self.event is not None)

    def newest(self) -> Iterator[tuple[int, Message]]:
        """Yield index and message, newest first; the event's index is `EVENT`."""
        if self.event is not None:
            yield EVENT, self.event
        history = self.history
        for index in range(history.stop - 1, history.earlier - 1, -1):
            message = history[index]
            if message.counted:
                yield index, message

    def speaker(self, place: int) -> str | None:
        """Return the player who said the message at a place; None for the game or an NPC."""
        if place < EVENT:
            return None
        message = self.event if place == EVENT else self.history[place]
        return message.name or "" if message is not None and message.role == "user" else None


class Window:
    """The places of the keys of one book in a scan; during a run it only grows.

    `given_up` has, by the number of a pattern, the texts in which it was not searched to the end.

    The patterns of the book may take `steps` in all messages, and as many in all other texts. The
    order in which texts are searched depends only on the scan. A text costs the same steps whether
    it is searched now or was in an earlier turn. So every process that composes the same turn gives
    up the same patterns in the same texts.
    """

    def __init__(
        self,
        scan: Scan,
        key_index: BookIndex,
        *,
        of: tuple[str, ...],
        include_names: bool,
        steps: int = TURN_STEPS,
    ) -> None:
        self._scan = scan
        self._key_index = key_index
        self._steps = steps  # in the messages of the history
        self._steps_in_texts = steps
        self._steps_alone = steps  # in messages that are searched one by one
        self.given_up: dict[int, list[tuple[FoundKey, str]]] = {}
        self.hits = hit_cache_of(scan.history, key_index.table, of=of, with_names=include_names)
        self.memo = self.hits.memo
        """Results that depend on the hits of this book in this conversation."""
        self._reached = -1
        self._oldest: dict[int, int] = {}  # by depth the index of the first message in it
        self._newest: dict[int, FoundKey] = {}  # keys in the event and the notes
        self._newest_moved: dict[
            int, FoundKey
        ] = {}  # keys in an event about somebody who comes or goes
        self._fed: Places = _NONE_FED
        self._feeds = 0
        self._sources: dict[SourceName, Hits] = {}
        self._texts: list[tuple[str, bool]] = []  # with whether it tells who comes and goes
        self._by_age: list[PatternHits] = []  # what patterns found in each message, by its age
        self._scanned: list[Scanned] = []  # what was found in each message, by its age
        self._fed_texts: list[str] = []
        self._joined: dict[object, PatternHits] = {}

    @property
    def newest(self) -> Mapping[int, FoundKey]:
        """The places of keys in the event and in the notes."""
        return self._newest | self._newest_moved if self._newest_moved else self._newest

    @property
    def fed(self) -> Mapping[int, FoundKey]:
        """The places of keys in the texts of active entries."""
        return self._fed

    def reach(self, depth: int) -> Collection[int]:
        """Scan the newest `depth` messages; return the keys whose place in the history changed."""
        if depth <= self._reached:
            return ()
        history = self._scan.history
        if self._reached <= 0 < depth:
            self._add_newest()
        first = self._oldest_in(depth)
        changed = self.hits.reach(history, first=first, stop=history.stop, steps=self._steps)
        for index, given_up in self.hits.given_up(first=first, stop=history.stop):
            self._give_up(given_up, FoundKey(index, _NOWHERE))
        self._reached = depth
        if self._key_index.patterns:
            newest = islice(self._scan.newest(), depth)
            # SillyTavern trims each message before it joins them.
            self._texts = [
                (self.hits.text_of(message).strip(), message.is_movement) for _, message in newest
            ]
        return changed

    def _oldest_in(self, depth: int) -> int:
        """Return the index of the oldest message of the history among the newest `depth`."""
        if depth not in self._oldest:
            history = self._scan.history
            count = depth - (self._scan.event is not None)
            self._oldest[depth] = min(history.newest_from(count), history.stop)
        return self._oldest[depth]

    def _add_newest(self) -> None:
        """Search what counts as newest: the event or else the newest message, then the notes."""
        scan = self._scan
        if not scan.texts and scan.event is None:
            return  # `hits` has the messages of the history
        for index, message in islice(scan.newest(), 1):
            scanned = self.hits.of(message)
            newest = self._newest_moved if message.is_movement else self._newest
            newest.update({n: FoundKey(index, span) for n, span in scanned.hits.items()})
            if index == EVENT:  # `reach` counts any other message
                self._steps -= scanned.steps
                self._give_up(scanned.given_up, FoundKey(EVENT, _NOWHERE))
        for text in scan.texts:
            scanned = self._in_text(text)
            for number, span in scanned.hits.items():
                self._newest.setdefault(number, FoundKey(NOTE, span))
            self._give_up(scanned.given_up, FoundKey(NOTE, _NOWHERE))

    def found_keys(self) -> set[int]:
        """Return the keys found in the scanned messages and notes."""
        return {*self._newest, *self._newest_moved, *self.hits.said, *self.hits.moved}

    def has_any(self, numbers: Collection[int]) -> bool:
        """True if any of these keys was found in the scanned messages and notes."""
        return not (
            self.hits.said.keys().isdisjoint(numbers)
            and self._newest.keys().isdisjoint(numbers)
            and self.hits.moved.keys().isdisjoint(numbers)
            and self._newest_moved.keys().isdisjoint(numbers)
        )

    def search_sources(self) -> list[int]:
        """Search the sources that entries of the book ask for; return the keys found there."""
        fresh: list[int] = []
        for name in self._key_index.sources:
            text = self._scan.sources.get(name)
            if text:
                scanned = self._in_text(text)
                self._sources[name] = scanned.hits
                fresh += scanned.hits
                self._give_up(scanned.given_up, FoundKey(SOURCE, _NOWHERE, name))
        return fresh

    def mentions(self, numbers: Collection[int], *, movement: bool) -> Iterator[tuple[int, int]]:
        """Yield age and place of the messages with one of these keys, newest first.

        Messages about somebody who comes or goes count only with `movement`.
        """
        patterns = [p for number, p in self._key_index.patterns.items() if number in numbers]
        newest = islice(self._scan.newest(), MOST_LOOKED_BACK)
        for age, (place, message) in enumerate(newest):
            if message.is_movement and not movement:
                continue
            hits = self._scanned_at(age).hits
            if not hits.keys().isdisjoint(numbers):
                yield age, place
            elif patterns:
                places = self._by_itself(age).places
                if any(pattern in places for pattern in patterns):
                    yield age, place

    def feed(self, texts: Texts) -> None:
        """Search these texts of active entries, unless the same list was searched a turn before."""
        self._feeds += 1
        known = self.hits.feeds.get(self._feeds)
        if (
            known is not None
            and known.texts is texts
            and known.before is self._fed
            and (not known.steps or known.steps < self._steps_in_texts)
        ):
            self._fed = known.after
            self._steps_in_texts -= known.steps
            return
        before, after, known_texts = self._fed, dict(self._fed), self.hits.fed
        steps = self._steps_in_texts
        for of, text in texts:
            found = known_texts.get(of)
            is_searched = found is not None and found.text == text
            if found is not None and is_searched and (not found.steps or self._steps_in_texts > 0):
                self._steps_in_texts -= found.steps
            else:
                found = self._fed_by(of, text)
            if found.places:  # most feed nothing
                for number, place in found.places.items():
                    after.setdefault(number, place)
        self._fed = after
        if not self.given_up:
            steps -= self._steps_in_texts
            self.hits.feeds[self._feeds] = Feed(texts, before, after, steps)

    def _fed_by(self, of: str, text: str) -> FedText:
        """Search the text of an entry; keep the result if no pattern was given up."""
        scanned = self._in_text(text)
        places = {number: FoundKey(FED, span, of) for number, span in scanned.hits.items()}
        made = FedText(text, places, scanned.steps)
        self._give_up(scanned.given_up, FoundKey(FED, _NOWHERE, of))
        if not scanned.given_up:
            self.hits.fed[of] = made
        return made

    def feed_as_one(self, texts: Iterable[str]) -> None:
        """Add the texts of one pass as one text, for patterns that reach over texts."""
        if self._key_index.patterns:
            self._fed_texts.append("\n".join(texts))
            self._joined = {}

    def find_first(
        self, numbers: Sequence[int], entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> tuple[int, FoundKey] | None:
        """Return the first of these keys that `entry` sees: its index and its place."""
        only_messages = not (self._fed or self._sources or self._key_index.patterns)
        hears_what_is_said = not (self._newest or entry.hears_movement or depth < self._reached)
        if only_messages and hears_what_is_said:  # as for most entries
            said = self.hits.said
            for at, number in enumerate(numbers):
                if number in said:
                    return at, said[number]
                if number < 0:  # `ALWAYS` or `NEVER`
                    break
            else:
                return None
        for at, number in enumerate(numbers):
            found = self._in_messages(number, entry, depth)
            if found is None and (not only_messages or number < 0):
                found = self.find_key(number, entry, depth, sees_fed=sees_fed)
            if found is not None:
                return at, found
        return None

    def find_key(
        self, number: int, entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> FoundKey | None:
        """Return the place of a key for `entry`, which sees `depth` messages; None if not found."""
        if number == ALWAYS:
            return ANYWHERE
        found = self._in_messages(number, entry, depth)
        if found is not None:
            return found
        if number in self._key_index.patterns:
            return self._of_pattern(number, entry, depth, sees_fed)
        if sees_fed and number in self._fed:
            return self._fed[number]
        return self._in_sources(number, entry) if entry.sources else None

    def find_in_movement(
        self, numbers: Iterable[int], entry: LoreEntry, depth: int
    ) -> FoundKey | None:
        """Return a key's place in a movement message, for an entry that does not hear those."""
        if entry.hears_movement or not (self._newest_moved or self.hits.moved):
            return None
        return next(filter(None, (self._moved(number, depth) for number in numbers)), None)

    def _in_messages(self, number: int, entry: LoreEntry, depth: int) -> FoundKey | None:
        """Return the last place of a key in the notes and the messages that an entry hears."""
        said = self._within(number, depth, self._newest, self.hits.said)
        if not entry.hears_movement:
            return said
        moved = self._moved(number, depth)
        if said is None or moved is None:
            return said or moved
        is_newer = 0 <= said.place < moved.place or said.place >= 0 > moved.place
        return moved if is_newer else said

    def _moved(self, number: int, depth: int) -> FoundKey | None:
        """Return the last place of a key in messages about somebody who comes or goes."""
        return self._within(number, depth, self._newest_moved, self.hits.moved)

    def _within(
        self,
        number: int,
        depth: int,
        newest: Mapping[int, FoundKey],
        messages: Mapping[int, FoundKey],
    ) -> FoundKey | None:
        """Return the last place of a key among the newest `depth` messages, from these mappings."""
        if newest and number in newest:
            return newest[number] if depth > 0 else None
        found = messages.get(number)
        if found is None or (depth < self._reached and found.place < self._oldest_in(depth)):
            return None
        return found

    def _in_sources(self, number: int, entry: LoreEntry) -> FoundKey | None:
        for name in sorted(entry.sources & self._sources.keys()):
            span = self._sources[name].get(number)
            if span is not None:
                return FoundKey(SOURCE, span, name)
        return None

    def _of_pattern(
        self, number: int, entry: LoreEntry, depth: int, sees_fed: bool
    ) -> FoundKey | None:
        """Return the place of a pattern in all texts that an entry sees, searched as one text.

        If that text is too long to be searched to its end, each message is searched by itself. So
        one message never hides a pattern in another.
        """
        if depth <= 0:
            return None
        pattern = self._key_index.patterns[number]
        whole = self._as_one(entry, depth, sees_fed)
        place = whole.places.get(pattern)
        if place is not None:
            return FoundKey(SOMEWHERE, Span(*place))
        if pattern in whole.given_up or not whole.is_whole:
            return self._in_any(number, pattern, entry, depth)
        return None

    def _in_any(
        self, number: int, pattern: Pattern, entry: LoreEntry, depth: int
    ) -> FoundKey | None:
        """Return the place of a pattern in the newest message with it that an entry sees."""
        hears = entry.hears_movement
        for age, (_, moves) in enumerate(self._texts[:depth]):
            if moves and not hears:
                continue
            found = self._by_itself(age)
            if place := found.places.get(pattern):
                return FoundKey(SOMEWHERE, Span(*place))
            if pattern in found.given_up:
                place_of_it = next(islice(self._scan.newest(), age, None))[0]
                why = {number: found.given_up[pattern]}
                self._give_up(why, FoundKey(place_of_it, _NOWHERE))
        return None

    def _by_itself(self, age: int) -> PatternHits:
        """Return the places of patterns in the message of this age, searched by itself."""
        for _, message in islice(self._scan.newest(), len(self._by_age), age + 1):
            found = search_patterns(
                _MARK + self.hits.text_of(message).strip(),
                self._key_index.patterns.values(),
                steps=TEXT_STEPS if self._steps_alone > 0 else 0,
            )
            self._by_age.append(found)
            self._steps_alone -= found.steps
        return self._by_age[age]

    def _scanned_at(self, age: int) -> Scanned:
        """Return the keys in the message of this age, which may be older than the window."""
        for _, message in islice(self._scan.newest(), len(self._scanned), age + 1):
            scanned = self.hits.of(message, steps=TEXT_STEPS if self._steps_alone > 0 else 0)
            self._scanned.append(scanned)
            self._steps_alone -= scanned.steps
        return self._scanned[age]

    def _in_text(self, text: str) -> Scanned:
        """Search a text that is no message; without patterns if no steps are left."""
        table = self._key_index.table
        scanned = table.scanned_in(text, steps=TEXT_STEPS if self._steps_in_texts > 0 else 0)
        self._steps_in_texts -= scanned.steps
        return scanned

    def _give_up(self, given_up: GivenUp, where: FoundKey) -> None:
        """Record the patterns that were given up in a text; verdicts on their entries say so."""
        for number, why in given_up.items():
            places = self.given_up.setdefault(number, [])
            if len(places) < MOST_PLACES and (where, why) not in places:
                places.append((where, why))

    def _as_one(self, entry: LoreEntry, depth: int, sees_fed: bool) -> PatternHits:
        """Return the places of patterns in all texts that an entry sees, searched as one text.

        The newest message comes first (SillyTavern `WorldInfoBuffer.get`).
        """
        slot = (min(depth, self._reached), sees_fed, entry.sources, entry.hears_movement)
        if slot not in self._joined:
            hears = entry.hears_movement
            texts = [text for text, moves in self._texts[:depth] if hears or not moves]
            texts += [
                self._scan.sources[name] for name in sorted(entry.sources & self._sources.keys())
            ]
            texts += self._scan.texts
            texts += self._fed_texts if sees_fed else ()
            found = self._joined[slot] = search_patterns(
                _MARK + f"\n{_MARK}".join(texts),
                self._key_index.patterns.values(),
                steps=TEXT_STEPS if self._steps_in_texts > 0 else 0,
            )
            self._steps_in_texts -= found.steps
        return self._joined[slot]
