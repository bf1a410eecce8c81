"""Load what the minds of all NPCs in a room need, with a few queries for all of them.

Evennia reads each Attribute and tag when it is first used, and the store reads each NPC's rows. A
player who enters a room of twenty unused NPCs would wait for hundreds of small queries. Therefore
the first mind that is created in a room also creates those of the other NPCs there.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import DatabaseError
from evennia.objects.models import ObjectDB
from evennia.utils import logger

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.inputs.shipped_providers import GOALS, RELATIONS
from evennia_ai.npc.npc_settings import ATTRIBUTE
from evennia_ai.npc.senses.happenings import npcs_in
from evennia_ai.npc.senses.presence import FACTION, MIND, NPC
from evennia_ai.store import memories
from evennia_ai.store.authored import cards

READ: Final = (ATTRIBUTE, "ai_enabled", "ai_partner", RELATIONS, GOALS)
"""The Attributes of an NPC that are read for every event and every turn."""


def company_of(npc: NPC) -> list[NPC]:
    """Return the NPC, and the other NPCs in its room that have no mind yet."""
    beside = [one for one in npcs_in(npc.location) if one != npc and MIND not in vars(one)]
    return [npc, *beside]


def read_together(npcs: Sequence[NPC]) -> None:
    """Load what the minds of these NPCs need. After an error, each NPC loads its own data later."""
    refs = [str(npc.id) for npc in npcs]
    try:
        memories.names_known_by.load_missing(refs)
        cards.assignment_of.load_missing(refs)
        _cache_attributes(npcs)
        _cache_tags(npcs)
    except (StoreError, DatabaseError) as error:
        logger.log_warn(
            f"evennia_ai: the data of NPCs {', '.join(refs)} must be loaded one by one: {error}"
        )


def _cache_attributes(npcs: Sequence[NPC]) -> None:
    """Fill Evennia's caches of these NPCs' Attributes. They also remember which ones are absent."""
    of_objects: Any = ObjectDB.db_attributes.through
    rows = of_objects.objects.filter(
        objectdb_id__in=[npc.id for npc in npcs],
        attribute__db_key__in=READ,
        attribute__db_category=None,
        attribute__db_attrtype=None,
    ).select_related("attribute")
    found = {(row.objectdb_id, row.attribute.db_key): row.attribute for row in rows}
    for npc in npcs:
        for key in READ:
            npc.attributes.backend._set_cache(key, None, found.get((npc.id, key)))


def _cache_tags(npcs: Sequence[NPC]) -> None:
    """Fill Evennia's caches of tags, aliases and permissions."""
    of_objects: Any = ObjectDB.db_tags.through
    rows = of_objects.objects.filter(
        objectdb_id__in=[npc.id for npc in npcs], tag__db_model="objectdb"
    )
    found: dict[tuple[int, str | None], dict[str, Any]] = {}
    for row in rows.select_related("tag").order_by("pk"):
        tag = row.tag
        key = f"{tag.db_key.lower()}-{tag.db_category.lower() if tag.db_category else None}"
        found.setdefault((row.objectdb_id, tag.db_tagtype), {})[key] = tag
    for npc in npcs:
        for handler in (npc.tags, npc.aliases, npc.permissions):
            handler._cache = found.get((npc.id, handler._tagtype), {})
            handler._cache_complete = True
        npc.tags._catcache[f"-{FACTION}"] = True
