"""Reminding: what an NPC may be reminded of in a turn, and what time it is for its memory.

Only what concerns the speaker, those it can see here, and the world. Warm, this makes no query.
"""

from typing import Any

from evennia.utils import gametime

from evennia_ai.game.events import Event
from evennia_ai.game.presence import bystanders, can_see
from evennia_ai.memory.memories import Memory
from evennia_ai.memory.recalling import Moment
from evennia_ai.store.memory import memories

_SECONDS: int = 3600


def hours_now() -> float:
    """The time of the game in its hours, as memories count them."""
    return round(gametime.gametime(absolute=True) / _SECONDS, 3)


def moment(event: Event | None) -> Moment:
    """When it is, and who is spoken with in private."""
    confidant = event.speaker_ref if event is not None and event.private else ""
    return Moment(hours=hours_now(), confidant_ref=confidant)


def candidates(npc: Any, event: Event | None) -> tuple[Memory, ...]:
    """The memories that this turn of the NPC looks at."""
    held = memories.held_by(str(npc.id))
    if not held.memories:
        return ()
    present = [
        str(other.id)
        for other in bystanders(npc)
        if held.is_about(str(other.id)) and can_see(npc, other)
    ]
    return held.candidates(speaker_ref=event.speaker_ref if event else "", present_refs=present)
