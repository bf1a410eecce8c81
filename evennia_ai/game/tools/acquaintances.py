"""Acquaintances: whom an NPC knows, wherever they are now."""

from collections.abc import Iterable
from typing import Any, Final

from evennia_ai.game.presence import object_of
from evennia_ai.store.history import conversations
from evennia_ai.store.memory import memories

MOST_RECORDS: Final = 2_000
"""How far back, in records of all its conversations, an NPC knows who was there."""


def remembered_people(npc_ref: str) -> list[Any]:
    """Those the NPC has memories of."""
    return _people(memory.about for memory in memories.held_by(npc_ref).memories)


def acquaintances(npc_ref: str) -> list[Any]:
    """Those the NPC has memories of, or heard or saw lately; not who asked to be forgotten."""
    met = conversations.speakers(npc_ref, most_records=MOST_RECORDS)
    return list(dict.fromkeys([*remembered_people(npc_ref), *_people(met)]))


def _people(refs: Iterable[str]) -> list[Any]:
    found = (object_of(ref) for ref in dict.fromkeys(refs) if ref)
    return [one for one in found if one is not None]
