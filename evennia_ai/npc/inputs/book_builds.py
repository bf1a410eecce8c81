"""Parses long books, cards and presets in another thread, so that the reactor never waits.

Parsing a book of ten thousand entries takes a good part of a second. Until a new revision is
parsed, turns use the earlier one, and their traces say so. If there is no earlier one (at the first
use after a start, or for the book in a card), the turn waits, and its NPC shows that it heard. A
builder's command waits too. The thread uses only plain values, no object of the game and no
database. It keeps a parsed book in a file, so that the next start need not parse the book.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, scopes_of
from evennia_ai.npc.views.parse_cache import (
    attached_book,
    is_card_read,
    is_long_to_read,
    is_read,
    know_read,
    make_card_ready,
    make_ready,
)
from evennia_ai.npc.views.presets import is_preset_read, parsed_preset
from evennia_ai.store.authored.cards import StoredCard, card_of
from evennia_ai.store.authored.lorebooks import StoredBook, books_for
from evennia_ai.store.authored.presets import StoredPreset, preset_for

LONG: Final = 100_000
"""A file with at least so many characters is parsed in another thread, because it takes
milliseconds."""
_MOST_UNREADABLE: Final = 256

InThread = Callable[..., "Deferred[Any]"]


class _Reading:
    """A book that is being parsed: what replaces it until then, and who waits for it."""

    def __init__(self, stored: StoredBook, before: Lorebook | None) -> None:
        new = f"revision {stored.revision} is still being parsed"
        self.is_first = before is None
        self.waiting: list[Deferred[None]] = []
        self._told = (
            f"{new}; the book has no entries until then"
            if before is None
            else f"{new}; revision {before.revision} is used until then"
        )
        self._before = before or Lorebook(label=stored.name)
        self._by_attachment: dict[str, Lorebook] = {}

    def stand_in(self, attach: str) -> Lorebook:
        """Return the book to use until then, with this attachment. Always the same object."""
        known = self._by_attachment.get(attach)
        if known is None:
            known = replace(self._before, attach=attach, told=self._told)
            self._by_attachment[attach] = known
        return known


class BookBuilds:
    """Starts and keeps track of the parsing of books, cards and presets in another thread."""

    def __init__(
        self, rules: ActivationRules, *, in_thread: InThread, folder: Path | None = None
    ) -> None:
        self._rules = rules
        self._in_thread = in_thread
        self._folder = folder
        # By name and hash of the book.
        self._reading: dict[tuple[str, str], _Reading] = {}
        self._unreadable: set[str] = set()
        # By name of a book: the hash and the value of the revision that was last used.
        self._last: dict[str, tuple[str, Lorebook]] = {}
        # By file: the Deferreds of callers that wait for a card's book or a preset.
        self._files: dict[StoredCard | StoredPreset, list[Deferred[str]]] = {}

    def stand_ins(self, books: Iterable[StoredBook]) -> Mapping[str, Lorebook]:
        """Start to parse long books that are not parsed yet.

        Return the books to use meanwhile, by name.
        """
        return {
            one.name: reading.stand_in(one.scope.kind if one.scope else "global")
            for one in books
            if (reading := self._parsing_of(one))
        }

    async def waited_for(self, npc: NPC, event: Event) -> frozenset[str]:
        """Wait until a turn that answers `event` may begin.

        Return the names of the books it waited for.

        The turn waits for books that have no earlier revision in use, for the player's books, and
        for the card and its book. It also waits for the preset.
        """
        player, scopes = event.known_ref, scopes_of(npc)
        theirs = books_for([Scope(kind="player", ref=player)]) if player else ()
        begun = {one.name: self._parsing_of(one) for one in books_for(scopes)}
        first = {name: reading for name, reading in begun.items() if reading and reading.is_first}
        own = {one.name: reading for one in theirs if (reading := self._parsing_of(one))}
        readings = {**first, **own}
        waiting: list[Deferred[None]] = []
        for reading in readings.values():
            waiting.append(Deferred())
            reading.waiting.append(waiting[-1])
        played = card_of(str(npc.id))
        card = None if played is None else self.read_card_first(played)
        assigned = preset_for(scopes)
        preset = None if assigned is None else self._read_preset_first(assigned)
        for done in waiting:
            await done
        if preset is not None:
            await preset
        of_card = await card if card is not None else ""
        return frozenset((*readings, of_card) if of_card else readings)

    def read_first(self, stored: StoredBook) -> "Deferred[None] | None":
        """Return a Deferred that fires when the book is parsed. None if that is the case already.

        Errors are reported where the book is used.
        """
        reading = self._parsing_of(stored)
        if reading is None:
            return None
        reading.waiting.append(Deferred())
        return reading.waiting[-1]

    def read_card_first(self, card: StoredCard) -> "Deferred[str] | None":
        """Return a Deferred with the label of the card's book, which fires when the card is parsed.

        Return None if the caller need not wait.
        """
        if is_card_read(card) or not is_long_to_read(card.source, characters=LONG):
            return None
        return self._parse_file(card, lambda: make_card_ready(card, self._rules))

    def _read_preset_first(self, preset: StoredPreset) -> "Deferred[str] | None":
        """Return a Deferred that fires with "" when the preset is parsed. None: no need to wait."""

        def read() -> str:
            parsed_preset(preset)
            return ""

        if is_preset_read(preset) or not is_long_to_read(preset.source, characters=LONG):
            return None
        return self._parse_file(preset, read)

    def _parse_file(
        self, file: StoredCard | StoredPreset, read: Callable[[], str]
    ) -> "Deferred[str] | None":
        """Call `read` in a thread. Return a Deferred with its result, None if it failed before."""
        if _file_key(file) in self._unreadable:
            return None
        done: Deferred[str] = Deferred()
        if file in self._files:
            self._files[file].append(done)
        else:
            self._files[file] = [done]
            self._in_thread(read).addBoth(self._file_parsed, file)
        return done

    def _file_parsed(self, ended: Any, file: StoredCard | StoredPreset) -> None:
        """Fire the Deferreds of all who wait for a card or a preset."""
        if isinstance(ended, Failure):
            self._refuse(_file_key(file))
        for one in self._files.pop(file):
            one.callback("" if isinstance(ended, Failure) else ended)
        if isinstance(ended, Failure):
            ended.trap(FormatError)

    def _parsing_of(self, stored: StoredBook) -> _Reading | None:
        """Return the running parsing of a book. Start it if needed.

        None if the book need not be parsed.
        """
        if len(stored.source) < LONG or stored.sha256 in self._unreadable:
            return None
        key = (stored.name, stored.sha256)
        if key in self._reading:
            return self._reading[key]
        last_sha256, last = self._last.get(stored.name, ("", None))
        if is_read(stored):
            if last_sha256 != stored.sha256:
                self._last[stored.name] = (stored.sha256, attached_book(stored))
            return None
        if last is not None and last_sha256 == stored.sha256:
            know_read(stored, last)  # the cache had dropped it
            return None
        self._reading[key] = _Reading(stored, last)
        self._in_thread(make_ready, stored, self._rules, self._folder).addBoth(
            self._book_parsed, stored
        )
        return self._reading.get(key)

    def _book_parsed(self, ended: Any, stored: StoredBook) -> None:
        """Fire the Deferreds of all who wait for a book.

        Errors are reported where the book is used.
        """
        if isinstance(ended, Failure):
            self._refuse(stored.sha256)
        for one in self._reading.pop((stored.name, stored.sha256)).waiting:
            one.callback(None)
        if isinstance(ended, Failure):
            ended.trap(FormatError)

    def _refuse(self, digest: str) -> None:
        """Remember a text that cannot be parsed, so that it is not parsed again."""
        if len(self._unreadable) >= _MOST_UNREADABLE:
            self._unreadable.clear()
        self._unreadable.add(digest)


def _file_key(file: StoredCard | StoredPreset) -> str:
    kind = "card" if isinstance(file, StoredCard) else "preset"
    return f"{kind} {file.name} {file.revision}"
