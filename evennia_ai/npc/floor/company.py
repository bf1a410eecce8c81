"""Company: the characters in a room, their names, and which of them a line names.

All listeners of a line ask the same questions. The answers are cached for one iteration of the
reactor, in which nobody comes, goes or is renamed. Without the cache, one line to thirty NPCs would
cost a thousand look-ups of names.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from evennia_ai.npc.floor.addressing import mentions
from evennia_ai.npc.senses.presence import is_npc, names_of
from evennia_ai.services.llm.resilience import Clock


class Somebody(NamedTuple):
    """A character in a room, as far as lines can name it."""

    ref: str
    names: tuple[str, ...]
    """The key, the aliases, and the names in the short description."""
    is_npc: bool


class Company:
    """The characters in one room, in order of arrival, with a cache of which texts name them."""

    def __init__(self, there: Sequence[Any]) -> None:
        refs, names, ours = [str(who.id) for who in there], map(names_of, there), map(is_npc, there)
        self.people: Final = tuple(map(Somebody, refs, names, ours))
        self._names: Final = tuple(name for one in self.people for name in one.names)
        self._named: Final[dict[str, frozenset[str]]] = {}

    def named_in(self, text: str) -> frozenset[str]:
        """Return the references of the characters that a text names."""
        known = self._named.get(text)
        if known is None:
            asked = self.people if mentions(text, self._names) else ()
            named = [one.ref for one in asked if mentions(text, one.names)]
            known = self._named[text] = frozenset(named)
        return known


class Companies:
    """Caches the company of each room for the current iteration of the reactor."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._known: Final[dict[int, Company]] = {}

    def around(self, character: Any) -> Company:
        """Return the characters in the room of `character`, itself included."""
        room = character.location
        if room is None:
            return NOBODY
        if not self._known:
            self._clock.callLater(0, self._known.clear)
        known = self._known.get(room.id)
        if known is None:
            there = room.contents_get(content_type="character")
            known = self._known[room.id] = Company(there)
        return known


NOBODY: Final = Company(())
