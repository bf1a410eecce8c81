"""Record which NPCs guard restricted knowledge bases.

This happens when a base changes, when the server starts, and before and after the tags or
permissions of an NPC change. Otherwise a builder could end a guard by removing a tag. Other
conditions of a lock are checked in each turn.
"""

from typing import Any

from django.db.models.signals import m2m_changed
from django.dispatch import receiver
from evennia.objects.models import ObjectDB

from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.npc.knowledge.guarding import must_guard, names_some, record_guards
from evennia_ai.npc.senses.presence import NPC, HasMind, objects_with_mind
from evennia_ai.npc.senses.witness import call_safely
from evennia_ai.store.knowledge.knowledge_bases import list_bases


def record_all_guards() -> None:
    """Record for all restricted knowledge bases which NPCs guard them now."""
    for info in list_bases():
        record_guards_of(info)


def record_guards_of(info: BaseInfo) -> None:
    """Record which NPCs guard a knowledge base now, if its lock makes only some NPCs guard it."""
    if not names_some(info):
        return
    for key, *_ in objects_with_mind():
        npc: NPC = ObjectDB.objects.get_id(key)
        if npc is not None:
            must_guard(npc, info)


@receiver(m2m_changed, sender=ObjectDB.db_tags.through, dispatch_uid="evennia_ai.guards")
def _tags_change(instance: Any, action: str, **_: Any) -> None:
    """Record which knowledge bases an NPC guards, before and after its tags or rights change."""
    if not isinstance(instance, HasMind):
        return
    npc: Any = instance
    if action == "post_add":  # Evennia's caches do not have the new tag yet
        npc.tags.reset_cache()
        npc.permissions.reset_cache()
    if action in ("pre_add", "post_add", "pre_remove", "pre_clear"):
        call_safely(npc, record_guards, npc)
