"""Tables of lorebooks, their revisions and where they count."""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF, SHA256


class Lorebook(models.Model):
    """A lorebook, its text to the letter, and who may see and change it and its entries.

    `locks` is an Evennia lock string, "" where there is none; `entry_locks` is JSON, such strings
    by the uid of the entry.
    """

    name = models.CharField(max_length=NAME, unique=True)
    source = models.TextField()
    sha256 = models.CharField(max_length=SHA256)
    revision = models.PositiveIntegerField(default=1)
    added_by = models.CharField(max_length=NAME)
    added_at = models.FloatField()
    locks = models.TextField(default="", blank=True)
    entry_locks = models.TextField(default="{}", blank=True)

    def __str__(self) -> str:
        return self.name


class LorebookRevision(models.Model):
    """One change of a lorebook; stays when the book is removed.

    `source` is the text as it was after the change, "" for a removal; the locks are those the
    book had then.
    """

    name = models.CharField(max_length=NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    source = models.TextField(default="", blank=True)
    locks = models.TextField(default="", blank=True)
    entry_locks = models.TextField(default="{}", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "number"], name="evennia_ai_lorebook_number")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.action}"


class LorebookAttachment(models.Model):
    """Where a lorebook counts."""

    lorebook = models.ForeignKey(Lorebook, on_delete=models.CASCADE)
    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    attached_by = models.CharField(max_length=NAME)
    attached_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["lorebook", "scope_kind", "scope_ref"], name="evennia_ai_attachment"
            )
        ]
        indexes = [models.Index(fields=["scope_kind", "scope_ref"], name="evennia_ai_attached_to")]

    def __str__(self) -> str:
        return f"{self.lorebook_id} at {self.scope_kind}:{self.scope_ref}"
