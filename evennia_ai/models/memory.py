"""Tables of what NPCs learnt with every change of it, and of whom they know by which name."""

from django.db import models

from evennia_ai.models.core import KINDS, NAME, REF


class Memory(models.Model):
    """One thing an NPC learnt; `created_at` and `recalled_at` are hours of the game.

    `about` is the reference of a person, "" for the world; `scene` has the words around it then.
    """

    npc_ref = models.CharField(max_length=REF)
    text = models.TextField()
    about = models.CharField(max_length=REF, default="", blank=True)
    importance = models.PositiveSmallIntegerField(default=5)
    created_at = models.FloatField()
    recalled_at = models.FloatField()
    learnt = models.CharField(max_length=KINDS, default="aloud")
    place_ref = models.CharField(max_length=REF, default="", blank=True)
    turn = models.PositiveIntegerField(default=0)
    author = models.CharField(max_length=NAME)
    scene = models.TextField(default="", blank=True)
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
    """One change of a memory; stays when the memory goes, until its words are erased on request.

    `about` is whom it was about, so that all there is about a person is found; `value` is JSON,
    what the memory says since, "" for a removal and for what was erased.
    """

    memory_id = models.PositiveBigIntegerField()
    npc_ref = models.CharField(max_length=REF)
    about = models.CharField(max_length=REF, default="", blank=True)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    value = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["memory_id", "number"], name="evennia_ai_memory_number")
        ]
        indexes = [models.Index(fields=["about"], name="evennia_ai_memory_rev_about")]

    def __str__(self) -> str:
        return f"{self.npc_ref} memory {self.memory_id}: {self.number} {self.action}"


class KnownName(models.Model):
    """One person whom an NPC met under a name; `number` 1 bore it first.

    `folded` is what is left of the name of all by which names look different and are not.
    """

    npc_ref = models.CharField(max_length=REF)
    folded = models.CharField(max_length=NAME)
    person_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()

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
