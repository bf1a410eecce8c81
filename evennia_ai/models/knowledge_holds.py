"""The table of NPCs that guard a restricted knowledge base, whatever its lock says of them now."""

from django.db import models

from evennia_ai.models.columns import REF
from evennia_ai.models.knowledge import KEY


class KnowledgeHold(models.Model):
    """An NPC that the lock of a base once held to safe summaries.

    It outlives the base: one of the same key holds the NPC too. `locks` are those of bases of this
    key that were removed, one a line: who lets the NPC go must pass them as well.
    """

    base_key = models.CharField(max_length=KEY)
    npc_ref = models.CharField(max_length=REF)
    held_since = models.FloatField()
    locks = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["base_key", "npc_ref"], name="evennia_ai_hold_once")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} guards {self.base_key}"
