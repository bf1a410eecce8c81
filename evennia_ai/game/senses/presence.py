"""Presence: who is around an NPC, whom of them it can see, and whether they are still there."""

from typing import Any, Final

from evennia.objects.models import ObjectDB

from evennia_ai.game.character import NPC, HasMind
from evennia_ai.game.senses.events import Event
from evennia_ai.prompt.components import GAME, Scope

ZONE: Final = "zone"
"""Category of the tags that say to which zones a room belongs."""
FACTION: Final = "faction"
"""Category of the tags that say to which factions an NPC belongs."""


def object_of(ref: str) -> Any:
    """The object of a reference, None where there is none any more."""
    return ObjectDB.objects.get_id(int(ref)) if ref.isdecimal() else None


def scopes_of(npc: NPC) -> tuple[Scope, ...]:
    """The scopes that apply to `npc` where it is: game, zones, factions, room, NPC."""
    room = npc.location
    factions = sorted(npc.tags.get(category=FACTION, return_list=True))
    own = (
        *(Scope(kind="faction", ref=faction) for faction in factions),
        Scope(kind="npc", ref=str(npc.id)),
    )
    if room is None:
        return (GAME, *own)
    zones = sorted(room.tags.get(category=ZONE, return_list=True))
    named = (Scope(kind="zone", ref=zone) for zone in zones)
    return (GAME, *named, Scope(kind="room", ref=str(room.id)), *own)


def can_see(npc: NPC, other: Any) -> bool:
    """Whether `npc` can see `other`, by the game's own rules.

    The room's `filter_visible` decides, which asks the locks `view` and `search`; somebody without
    a name for this looker is hidden as well.
    """
    if other == npc:
        return True
    if npc.location is not None:
        seen = bool(npc.location.filter_visible([other], npc))
    else:
        seen = bool(other.access(npc, "view"))
    return seen and bool(str(other.get_display_name(npc)).strip())


def bystanders(npc: NPC) -> list[Any]:
    """The other characters where `npc` is, in the order in which they came."""
    if npc.location is None:
        return []
    there = npc.location.contents_get(content_type="character")
    return [other for other in there if other != npc]


def seen_here(npc: NPC) -> list[Any]:
    """The other characters where `npc` is that it can see, in the order in which they came."""
    return [other for other in bystanders(npc) if can_see(npc, other)]


def is_npc(character: Any) -> bool:
    """Whether this is one of ours, and not a player whose character has a mind as well."""
    return isinstance(character, HasMind) and not character.has_account


def is_character(thing: Any) -> bool:
    """Whether this is somebody, and not a thing, a room or an exit."""
    return "character" in getattr(thing, "_content_types", ())


def why_gone(npc: NPC, event: Event) -> str:
    """Why nobody can be answered any more to `event`, "" while somebody can.

    The NPC is gone, cannot act or is elsewhere; or whoever it would answer is not there any more,
    and nobody else who could want to hear it.
    """
    if npc.pk is None:
        return "the NPC is gone"
    unable = npc.why_unable()
    if unable:
        return str(unable)
    if (str(npc.location.id) if npc.location else "") != event.room_ref:
        return "the NPC is somewhere else now"
    return "" if _is_somebody_waiting(npc, event) else f"{event.speaker_name} is not here any more"


def _is_somebody_waiting(npc: NPC, event: Event) -> bool:
    """Whether the one who did it is still there, or others who could hear an answer."""
    if not event.speaker_ref or event.kind == "leave" or npc.location is None:
        return True
    if any(str(other.id) == event.speaker_ref for other in npc.location.contents_get()):
        return True
    there = npc.location.contents_get(content_type="character")
    return not event.private and any(not is_npc(other) for other in there)
