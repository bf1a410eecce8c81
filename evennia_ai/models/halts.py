"""The table of halts: which NPCs, or the whole game, ask no model for now."""

from django.db import models

from evennia_ai.models.columns import NAME, REF


class Halt(models.Model):
    """A halt that is in force; `npc_ref` is "" for the whole game. A release removes the row."""

    npc_ref = models.CharField(max_length=REF, default="", blank=True, unique=True)
    halted_by = models.CharField(max_length=NAME)
    halted_at = models.FloatField()
    reason = models.CharField(max_length=NAME, default="", blank=True)

    def __str__(self) -> str:
        return f"{self.npc_ref or 'the game'}: {self.halted_by}"
