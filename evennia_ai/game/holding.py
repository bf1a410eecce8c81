"""Holding: looking whom the locks of restricted bases hold, before anybody changes that.

When a base changes, when the server starts, and before and after an NPC gets or loses a tag or a
permission: what any builder can take away ends no guard then. Whatever else a lock asks is looked
at in each turn.
"""

from typing import Any

from django.db.models.signals import m2m_changed
from django.dispatch import receiver
from evennia.objects.models import ObjectDB

from evennia_ai.game.character import NPC, HasMind
from evennia_ai.game.knowledge.guarding import is_held, names_some, notice
from evennia_ai.game.overview import all_npcs
from evennia_ai.game.senses.witness import safely
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.store.knowledge.knowledge_bases import bases


def look_at_everybody() -> None:
    """Write down whom the locks of restricted bases hold now."""
    for info in bases():
        look_at_all(info)


def look_at_all(info: BaseInfo) -> None:
    """The same for one base; nothing where it is restricted for nobody or for everybody."""
    if not names_some(info):
        return
    for found in all_npcs():
        npc: NPC = ObjectDB.objects.get_id(found.id)
        if npc is not None:
            is_held(npc, info)


@receiver(m2m_changed, sender=ObjectDB.db_tags.through, dispatch_uid="evennia_ai.guards")
def _tags_change(instance: Any, action: str, **_: Any) -> None:
    """Notice what an NPC guards with the tags and permissions it has, before it has others."""
    if not isinstance(instance, HasMind):
        return
    npc: Any = instance
    if action == "post_add":  # Evennia's caches do not know the new one yet
        npc.tags.reset_cache()
        npc.permissions.reset_cache()
    if action in ("pre_add", "post_add", "pre_remove", "pre_clear"):
        safely(npc, notice, npc)
