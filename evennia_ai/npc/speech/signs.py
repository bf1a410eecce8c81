"""Signs: gestures for a player whose words to an NPC get no answer.

Only the speaker sees the gesture. It is in no history, so it needs no database and no model learns
to imitate it. A speaker sees the same sign at most once a minute.
"""

from collections.abc import Callable, Hashable
from typing import Final, Literal

from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, bystanders, is_npc
from evennia_ai.npc.speech.output import show_gesture

Sign = Literal["lost", "stopped"]
"""`lost`: nobody will answer. `stopped`: a builder stopped the NPCs of the game."""

AGAIN_SECONDS: Final = 60.0


class Recently:
    """The things that happened within the last minute."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now: Final = now
        self._happened_at: Final[dict[Hashable, float]] = {}
        """When each thing happened, oldest first."""

    def is_first(self, what: Hashable) -> bool:
        """Note that `what` happens. Return False if it also happened within the last minute."""
        now, known = self._now(), self._happened_at
        while known and next(iter(known.values())) + AGAIN_SECONDS <= now:
            del known[next(iter(known))]
        if what in known:
            return False
        known[what] = now
        return True


class Signs:
    """Shows signs. `lines` has the gesture of each sign, "" for none."""

    def __init__(self, lines: dict[Sign, str], *, now: Callable[[], float]) -> None:
        self._lines: Final = lines
        self._recently: Final = Recently(now)

    def show(self, sign: Sign, npc: NPC, event: Event) -> bool:
        """Show the speaker that `npc` will not answer.

        Return False if they saw this sign within the last minute, are not present, or are an NPC.
        """
        here = bystanders(npc) if npc.pk is not None else ()
        speaker = next((one for one in here if str(one.id) == event.speaker_ref), None)
        if speaker is None or event.hops or is_npc(speaker):
            return False
        if not self._recently.is_first((sign, npc.id, speaker.id)):
            return False
        if self._lines[sign]:
            show_gesture(npc, [speaker], self._lines[sign])
        return True
