"""Company: who is in a room, what they are called, and whom of them a line names.

All who hear a line there ask the same of it. It is found out once for those who ask in one turn of
the reactor, in which nobody comes, goes or is renamed; where thirty NPCs hear each other, each
asking for itself would be a thousand names a line.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from evennia_ai.npc.floor.addressing import mentions
from evennia_ai.npc.senses.presence import is_npc, names_of
from evennia_ai.services.llm.resilience import Clock


class Somebody(NamedTuple):
    """A character in a room."""

    ref: str
    names: tuple[str, ...]
    """Its name and its aliases."""
    is_npc: bool


class Company:
    """The characters in one room, in the order in which they came."""

    def __init__(self, there: Sequence[Any]) -> None:
        refs, names, ours = [str(who.id) for who in there], map(names_of, there), map(is_npc, there)
        self.people: Final = tuple(map(Somebody, refs, names, ours))
        self._names: Final = tuple(name for one in self.people for name in one.names)
        self._named: Final[dict[str, frozenset[str]]] = {}

    def named_in(self, text: str) -> frozenset[str]:
        """The references of those whom a text names."""
        known = self._named.get(text)
        if known is None:
            asked = self.people if mentions(text, self._names) else ()
            named = [one.ref for one in asked if mentions(text, one.names)]
            known = self._named[text] = frozenset(named)
        return known


class Companies:
    """The company of each room that is asked for in the current turn of the reactor."""

    def __init__(self, clock: Clock) -> None:
        self._clock: Final = clock
        self._known: Final[dict[int, Company]] = {}

    def around(self, character: Any) -> Company:
        """Who is where the character is, itself among them; nobody where it is nowhere."""
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
