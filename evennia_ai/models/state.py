"""State: which kinds of authored things were changed, and how often."""

from django.db import models

from evennia_ai.models.columns import KINDS


class StateRevision(models.Model):
    """A number per kind of authored thing, raised by every write, so that processes can tell."""

    name = models.CharField(max_length=KINDS, unique=True)
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.number}"
