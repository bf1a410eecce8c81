"""Tables of authors' notes."""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF


class Note(models.Model):
    """An author's note of an NPC; `position` orders the notes of one NPC."""

    npc_ref = models.CharField(max_length=REF)
    position = models.PositiveIntegerField(default=0)
    content = models.TextField(default="", blank=True)
    depth = models.PositiveIntegerField(default=4)
    role = models.CharField(max_length=KINDS, default="system")
    every = models.PositiveIntegerField(default=1)
    mode = models.CharField(max_length=KINDS, default="floating")
    revision = models.PositiveIntegerField(default=1)
    changed_by = models.CharField(max_length=NAME)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "position"], name="evennia_ai_note_position")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.position}"


class NoteRevision(models.Model):
    """One change of an author's note; stays when the note is removed.

    `value` is JSON, what the note says since, "" for a removal.
    """

    npc_ref = models.CharField(max_length=REF)
    position = models.PositiveIntegerField(default=0)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    value = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "position", "number"], name="evennia_ai_note_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.position}: {self.number} {self.action}"
