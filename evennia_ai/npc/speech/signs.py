"""Gestures that show a player that an NPC will not answer.

Only the speaker sees the gesture. No history contains it, so it needs no database, and no model
learns to imitate it. A speaker sees the same gesture of an NPC at most once a minute.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final, Literal

from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, bystanders, is_npc
from evennia_ai.npc.speech.output import show_gesture

Sign = Literal["lost", "stopped", "opted_out", "withheld"]
"""Why there is no answer. `lost`: too much waits, the line may cause no more answers, or the answer
failed. `stopped`: a person stopped all NPCs or paused this one. `opted_out`: the player wants no
NPC to hear them. `withheld`: the game's filter withheld the words.
"""

AGAIN_SECONDS: Final = 60.0


class Recently:
    """Remembers for a minute what happened, so that for example no sign is shown twice."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now: Final = now
        self._happened_at: Final[dict[Hashable, float]] = {}
        """When each thing happened, oldest first."""

    def is_first(self, what: Hashable) -> bool:
        """Record that `what` happens. Return False if it also happened within the last minute."""
        now, known = self._now(), self._happened_at
        while known and next(iter(known.values())) + AGAIN_SECONDS <= now:
            del known[next(iter(known))]
        if what in known:
            return False
        known[what] = now
        return True


class Signs:
    """Shows the gestures. `lines` has the text of each one; "" shows none."""

    def __init__(self, lines: dict[Sign, str], *, now: Callable[[], float]) -> None:
        self._lines: Final = lines
        self._recently: Final = Recently(now)

    def show(self, sign: Sign, npc: NPC, event: Event) -> bool:
        """Show the speaker of `event` that `npc` will not answer.

        Return False if the speaker saw this sign within the last minute, is not present, or is an
        NPC.
        """
        here = bystanders(npc) if npc.pk is not None else ()
        speaker = next((one for one in here if str(one.id) == event.speaker_ref), None)
        if speaker is None or event.hops or is_npc(speaker):
            return False
        return self.show_to(sign, npc, speaker)

    def show_to(self, sign: Sign, npc: NPC, person: Any) -> bool:
        """Show a person that `npc` will not answer.

        Return False if the person saw this sign within the last minute.
        """
        if not self._recently.is_first((sign, npc.id, person.id)):
            return False
        if self._lines[sign]:
            show_gesture(npc, [person], self._lines[sign])
        return True
