"""Tables of memories, their revisions, and the names by which NPCs know people."""

from django.db import models

from evennia_ai.models.core import KINDS, NAME, REF


class Memory(models.Model):
    """One sentence that an NPC remembers."""

    npc_ref = models.CharField(max_length=REF)
    text = models.TextField()
    about = models.CharField(max_length=REF, default="", blank=True)
    """The reference of the person it is about; "" for the world."""
    importance = models.PositiveSmallIntegerField(default=5)
    created_at = models.FloatField()
    """When the NPC learnt it, in hours of game time."""
    recalled_at = models.FloatField()
    """When a prompt last contained it, in hours of game time."""
    learnt = models.CharField(max_length=KINDS, default="aloud")
    place_ref = models.CharField(max_length=REF, default="", blank=True)
    turn = models.PositiveIntegerField(default=0)
    author = models.CharField(max_length=NAME)
    scene = models.TextField(default="", blank=True)
    """The words spoken around the time when the NPC learnt it."""
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        verbose_name_plural = "memories"
        indexes = [
            models.Index(fields=["npc_ref"], name="evennia_ai_memory_npc"),
            models.Index(fields=["about"], name="evennia_ai_memory_about"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} memory {self.pk}"


class MemoryRevision(models.Model):
    """One change of a memory.

    It stays when the memory is removed. Its words are erased on request only.
    """

    memory_id = models.PositiveBigIntegerField()
    npc_ref = models.CharField(max_length=REF)
    about = models.CharField(max_length=REF, default="", blank=True)
    """The person whom the memory was about, so that erasing finds everything about a person."""
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    value = models.TextField(default="", blank=True)
    """JSON: the memory after the change. "" after a removal or an erasure."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["memory_id", "number"], name="evennia_ai_memory_number")
        ]
        indexes = [models.Index(fields=["about"], name="evennia_ai_memory_rev_about")]

    def __str__(self) -> str:
        return f"{self.npc_ref} memory {self.memory_id}: {self.number} {self.action}"


class KnownName(models.Model):
    """A name by which an NPC knows a person."""

    npc_ref = models.CharField(max_length=REF)
    folded = models.CharField(max_length=NAME)
    """The name without differences of case, accents and look-alike letters."""
    person_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()
    """1 for the first person whom the NPC met under this name, 2 for the next."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "folded", "person_ref"], name="evennia_ai_name_person"
            ),
            models.UniqueConstraint(
                fields=["npc_ref", "folded", "number"], name="evennia_ai_name_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} knows {self.person_ref} as {self.folded} {self.number}"
