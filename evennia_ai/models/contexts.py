"""The table of contexts: what builders switched off in each, and what it was before."""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME


class ContextRevision(models.Model):
    """One change of a context; the newest of each counts. `off` is a JSON list of keys."""

    context = models.CharField(max_length=KINDS)
    number = models.PositiveIntegerField()
    off = models.TextField(default="[]")
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "number"], name="evennia_ai_context_number")
        ]

    def __str__(self) -> str:
        return f"{self.context} {self.number}"
