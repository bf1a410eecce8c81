"""The window of a scan: the texts that are searched for keys, and the keys found in them.

The window has the event to answer and the newest messages of the history. Records that do not count
for depths are left out. Notes that are marked to be scanned belong to every window that is not
empty. An entry may ask for further sources, such as the persona. Recursion also searches the texts
of active entries.
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

# How many messages are searched for the key of an entry that is placed next to such a message.
MOST_LOOKED_BACK: Final = 1000
# A verdict names at most this many texts in which the search for a regular expression stopped.
MOST_PLACES: Final = 4
# The character that SillyTavern puts before each text when it searches all texts as one. Regular
# expressions of authors may contain it.
_MARK: Final = "\x01"
_NOWHERE: Final = Span(0, 0)
_NONE_FED: Final[Places] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The texts that are searched for keys: history, the event to answer, notes and sources.

    `texts` are author's notes that are marked to be scanned. They count as newest messages.
    `sources` are further texts by name, for entries that ask for them.
    """

    history: History
    event: Message | None = None
    texts: tuple[str, ...] = ()
    sources: Mapping[SourceName, str] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of messages that can be searched for keys."""
        history = self.history
        return history.counted(history.earlier) + (self.event is not None)

    def newest(self) -> Iterator[tuple[int, Message]]:
        """Yield index and message, newest message first. The index of the event is `EVENT`."""
        if self.event is not None:
            yield EVENT, self.event
        history = self.history
        for index in range(history.stop - 1, history.earlier - 1, -1):
            message = history[index]
            if message.counted:
                yield index, message

    def speaker(self, place: int) -> str | None:
        """Return the player who said the message with this index; None if no player said it."""
        if place < EVENT:
            return None
        message = self.event if place == EVENT else self.history[place]
        return message.name or "" if message is not None and message.role == "user" else None


class Window:
    """The places where the keys of one lorebook were found in one turn. Texts are only added.

    `given_up` has the texts in which the search for a regular expression was given up, by number of
    the key.

    The regular expressions of the book may take `steps` steps in all messages, and as many again in
    all other texts. The order of the searches depends only on the scan. A text costs the same
    number of steps in each turn, even if its result is cached. So every process that composes the
    same turn gives up the same searches.
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
        # Search steps left for regular expressions: in the history, in other texts, and in messages
        # that are searched separately.
        self._steps = self._steps_in_texts = self._steps_alone = steps
        self.given_up: dict[int, list[tuple[FoundKey, str]]] = {}
        self.hits = hit_cache_of(scan.history, key_index.table, of=of, with_names=include_names)
        self.memo = self.hits.memo
        """Cached results that depend on the hits of this book in this conversation."""
        self._reached = -1
        # The index of the oldest message within each scan depth.
        self._oldest: dict[int, int] = {}
        # The places of keys in the event and in notes. An event about a character who arrives or
        # leaves is left out.
        self._newest: dict[int, FoundKey] = {}
        # The places of keys in an event about a character who arrives or leaves.
        self._newest_moved: dict[int, FoundKey] = {}
        self._fed: Places = _NONE_FED
        self._feeds = 0
        self._sources: dict[SourceName, Hits] = {}
        # The newest messages as texts, each with True if it is about an arrival or a departure.
        self._texts: list[tuple[str, bool]] = []
        # The regular expressions found in each message that was searched separately, newest message
        # first.
        self._by_age: list[PatternHits] = []
        # The keys found in each message, newest message first.
        self._scanned: list[Scanned] = []
        self._fed_texts: list[str] = []
        self._joined: dict[object, PatternHits] = {}

    @property
    def newest(self) -> Mapping[int, FoundKey]:
        """The places of keys in the event and in author's notes."""
        return self._newest | self._newest_moved if self._newest_moved else self._newest

    @property
    def fed(self) -> Mapping[int, FoundKey]:
        """The places of keys in the texts of active entries."""
        return self._fed

    def reach(self, depth: int) -> Collection[int]:
        """Search the newest `depth` messages; return keys whose place in the history changed."""
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
            # SillyTavern removes the blanks around each message before it joins all texts.
            self._texts = [
                (self.hits.text_of(message).strip(), message.is_movement) for _, message in newest
            ]
        return changed

    def _oldest_in(self, depth: int) -> int:
        """Return the index of the oldest of the newest `depth` messages that is in the history."""
        if depth not in self._oldest:
            history = self._scan.history
            count = depth - (self._scan.event is not None)
            self._oldest[depth] = min(history.newest_from(count), history.stop)
        return self._oldest[depth]

    def _add_newest(self) -> None:
        """Search the newest texts: the event (or else the newest message), then the notes."""
        scan = self._scan
        if not scan.texts and scan.event is None:
            return  # `reach` searches the messages of the history
        for index, message in islice(scan.newest(), 1):
            scanned = self.hits.scan_message(message)
            newest = self._newest_moved if message.is_movement else self._newest
            newest.update({n: FoundKey(index, span) for n, span in scanned.hits.items()})
            if index == EVENT:  # `reach` charges the steps of other messages
                self._steps -= scanned.steps
                self._give_up(scanned.given_up, FoundKey(EVENT, _NOWHERE))
        for text in scan.texts:
            scanned = self._search_text(text)
            for number, span in scanned.hits.items():
                self._newest.setdefault(number, FoundKey(NOTE, span))
            self._give_up(scanned.given_up, FoundKey(NOTE, _NOWHERE))

    def found_keys(self) -> set[int]:
        """Return the keys found in the searched messages and author's notes."""
        return {*self._newest, *self._newest_moved, *self.hits.said, *self.hits.moved}

    def has_any(self, numbers: Collection[int]) -> bool:
        """True if any of these keys was found in the searched messages and author's notes."""
        return not (
            self.hits.said.keys().isdisjoint(numbers)
            and self._newest.keys().isdisjoint(numbers)
            and self.hits.moved.keys().isdisjoint(numbers)
            and self._newest_moved.keys().isdisjoint(numbers)
        )

    def search_sources(self) -> list[int]:
        """Search the sources that entries ask for, and return the keys found in them."""
        fresh: list[int] = []
        for name in self._key_index.sources:
            text = self._scan.sources.get(name)
            if text:
                scanned = self._search_text(text)
                self._sources[name] = scanned.hits
                fresh += scanned.hits
                self._give_up(scanned.given_up, FoundKey(SOURCE, _NOWHERE, name))
        return fresh

    def mentions(self, numbers: Collection[int], *, movement: bool) -> Iterator[tuple[int, int]]:
        """Yield age and index of each message that contains one of these keys, newest first.

        Messages about a character who arrives or leaves are only included with `movement`.
        """
        patterns = [p for number, p in self._key_index.patterns.items() if number in numbers]
        newest = islice(self._scan.newest(), MOST_LOOKED_BACK)
        for age, (place, message) in enumerate(newest):
            if message.is_movement and not movement:
                continue
            hits = self._scan_message_at(age).hits
            if not hits.keys().isdisjoint(numbers):
                yield age, place
            elif patterns:
                places = self._search_separately(age).places
                if any(pattern in places for pattern in patterns):
                    yield age, place

    def feed(self, texts: Texts) -> None:
        """Search the texts of active entries for keys. The result for equal texts is reused."""
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
                found = self._search_entry_text(of, text)
            if found.places:  # most texts contain no keys
                for number, place in found.places.items():
                    after.setdefault(number, place)
        self._fed = after
        if not self.given_up:
            steps -= self._steps_in_texts
            self.hits.feeds[self._feeds] = Feed(texts, before, after, steps)

    def _search_entry_text(self, of: str, text: str) -> FedText:
        """Search the text of an entry for keys. The result is cached if no search was given up."""
        scanned = self._search_text(text)
        places = {number: FoundKey(FED, span, of) for number, span in scanned.hits.items()}
        made = FedText(text, places, scanned.steps)
        self._give_up(scanned.given_up, FoundKey(FED, _NOWHERE, of))
        if not scanned.given_up:
            self.hits.fed[of] = made
        return made

    def feed_as_one(self, texts: Iterable[str]) -> None:
        """Add the texts of one pass as one text, so that a match may extend over several."""
        added = [*texts]
        if self._key_index.patterns and any(added):
            self._fed_texts.append("\n".join(added))
            self._joined = {}

    def find_first(
        self, numbers: Sequence[int], entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> tuple[int, FoundKey] | None:
        """Return the index and the place of the first of these keys found for `entry`, or None."""
        only_messages = not (self._fed or self._sources or self._key_index.patterns)
        hears_what_is_said = not (self._newest or entry.hears_movement or depth < self._reached)
        if only_messages and hears_what_is_said:  # a fast path for most entries
            said = self.hits.said
            for at, number in enumerate(numbers):
                if number in said:
                    return at, said[number]
                if number < 0:  # the loop below handles `ALWAYS` and `NEVER`
                    break
            else:
                return None
        for at, number in enumerate(numbers):
            found = self._find_in_messages(number, entry, depth)
            if found is None and (not only_messages or number < 0):
                found = self.find_key(number, entry, depth, sees_fed=sees_fed)
            if found is not None:
                return at, found
        return None

    def find_key(
        self, number: int, entry: LoreEntry, depth: int, *, sees_fed: bool
    ) -> FoundKey | None:
        """Return the place of a key in the texts that `entry` searches at this depth, or None."""
        if number == ALWAYS:
            return ANYWHERE
        found = self._find_in_messages(number, entry, depth)
        if found is not None:
            return found
        if number in self._key_index.patterns:
            return self._find_pattern(number, entry, depth, sees_fed)
        if sees_fed and number in self._fed:
            return self._fed[number]
        return self._find_in_sources(number, entry) if entry.sources else None

    def find_in_movement(
        self, numbers: Iterable[int], entry: LoreEntry, depth: int
    ) -> FoundKey | None:
        """Return the place of a key in a movement message that the entry ignores, or None.

        A movement message says that a character arrives or leaves. The place is part of the reason
        why the entry is inactive.
        """
        if entry.hears_movement or not (self._newest_moved or self.hits.moved):
            return None
        return next(filter(None, (self._find_movement(number, depth) for number in numbers)), None)

    def _find_in_messages(self, number: int, entry: LoreEntry, depth: int) -> FoundKey | None:
        """Return the last place of a key in notes and in messages that the entry searches."""
        said = self._find_within(number, depth, self._newest, self.hits.said)
        if not entry.hears_movement:
            return said
        moved = self._find_movement(number, depth)
        if said is None or moved is None:
            return said or moved
        is_newer = 0 <= said.place < moved.place or said.place >= 0 > moved.place
        return moved if is_newer else said

    def _find_movement(self, number: int, depth: int) -> FoundKey | None:
        """Return the last place of a key in messages about a character who arrives or leaves."""
        return self._find_within(number, depth, self._newest_moved, self.hits.moved)

    def _find_within(
        self,
        number: int,
        depth: int,
        newest: Mapping[int, FoundKey],
        messages: Mapping[int, FoundKey],
    ) -> FoundKey | None:
        """Return the last place of a key in the newest `depth` messages, or in notes."""
        if newest and number in newest:
            return newest[number] if depth > 0 else None
        found = messages.get(number)
        if found is None or (depth < self._reached and found.place < self._oldest_in(depth)):
            return None
        return found

    def _sources_of(self, entry: LoreEntry) -> list[SourceName]:
        """Return the names of the sources that an entry searches, in the order of the search."""
        return [name for name in self._sources if name in entry.sources]

    def _find_in_sources(self, number: int, entry: LoreEntry) -> FoundKey | None:
        for name in self._sources_of(entry):
            span = self._sources[name].get(number)
            if span is not None:
                return FoundKey(SOURCE, span, name)
        return None

    def _find_pattern(
        self, number: int, entry: LoreEntry, depth: int, sees_fed: bool
    ) -> FoundKey | None:
        """Return where a regular expression matches in all texts of an entry, searched as one text.

        If the joined text is too long to be searched to its end, each message is searched
        separately. So a long message never hides a match in another message.
        """
        if depth <= 0:
            return None
        pattern = self._key_index.patterns[number]
        whole = self._search_joined(entry, depth, sees_fed)
        place = whole.places.get(pattern)
        if place is not None:
            return FoundKey(SOMEWHERE, Span(*place))
        if pattern in whole.given_up or not whole.is_whole:
            return self._find_in_one_message(number, pattern, entry, depth)
        return None

    def _find_in_one_message(
        self, number: int, pattern: Pattern, entry: LoreEntry, depth: int
    ) -> FoundKey | None:
        """Return where a regular expression matches in the newest message with a match, or None."""
        hears = entry.hears_movement
        for age, (_, moves) in enumerate(self._texts[:depth]):
            if moves and not hears:
                continue
            found = self._search_separately(age)
            if place := found.places.get(pattern):
                return FoundKey(SOMEWHERE, Span(*place))
            if pattern in found.given_up:
                place_of_it = next(islice(self._scan.newest(), age, None))[0]
                why = {number: found.given_up[pattern]}
                self._give_up(why, FoundKey(place_of_it, _NOWHERE))
        return None

    def _search_separately(self, age: int) -> PatternHits:
        """Search the message of this age separately; return places of regular expressions."""
        for _, message in islice(self._scan.newest(), len(self._by_age), age + 1):
            found = search_patterns(
                _MARK + self.hits.text_of(message).strip(),
                self._key_index.patterns.values(),
                steps=TEXT_STEPS if self._steps_alone > 0 else 0,
            )
            self._by_age.append(found)
            self._steps_alone -= found.steps
        return self._by_age[age]

    def _scan_message_at(self, age: int) -> Scanned:
        """Search the message of this age for keys. The message may be older than the scan depth."""
        for _, message in islice(self._scan.newest(), len(self._scanned), age + 1):
            scanned = self.hits.scan_message(
                message, steps=TEXT_STEPS if self._steps_alone > 0 else 0
            )
            self._scanned.append(scanned)
            self._steps_alone -= scanned.steps
        return self._scanned[age]

    def _search_text(self, text: str) -> Scanned:
        """Search a text that is not a message, without regular expressions if no steps are left."""
        table = self._key_index.table
        scanned = table.scan_text(text, steps=TEXT_STEPS if self._steps_in_texts > 0 else 0)
        self._steps_in_texts -= scanned.steps
        return scanned

    def _give_up(self, given_up: GivenUp, where: FoundKey) -> None:
        """Record in which text searches for regular expressions were given up, and why.

        The verdicts on the entries with these keys report this.
        """
        for number, why in given_up.items():
            places = self.given_up.setdefault(number, [])
            if len(places) < MOST_PLACES and (where, why) not in places:
                places.append((where, why))

    def _search_joined(self, entry: LoreEntry, depth: int, sees_fed: bool) -> PatternHits:
        """Return where regular expressions match in all texts of an entry, joined into one text.

        The newest message comes first (SillyTavern `WorldInfoBuffer.get`).
        """
        slot = (min(depth, self._reached), sees_fed, entry.sources, entry.hears_movement)
        if slot not in self._joined:
            hears = entry.hears_movement
            texts = [text for text, moves in self._texts[:depth] if hears or not moves]
            texts += [self._scan.sources[name].strip() for name in self._sources_of(entry)]
            texts += self._scan.texts
            texts += self._fed_texts if sees_fed else ()
            found = self._joined[slot] = search_patterns(
                _MARK + f"\n{_MARK}".join(texts),
                self._key_index.patterns.values(),
                steps=TEXT_STEPS if self._steps_in_texts > 0 else 0,
            )
            self._steps_in_texts -= found.steps
        return self._joined[slot]
