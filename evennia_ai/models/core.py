"""Lengths of columns that tables share, and the table of state revisions."""

from typing import Final

from django.db import models

KINDS: Final = 16
REF: Final = 255
NAME: Final = 200
SHA256: Final = 64
KEY: Final = 64
TITLE: Final = 255


class StateRevision(models.Model):
    """A number for each kind of authored thing.

    Every write raises the number, so that other processes notice the change.
    """

    name = models.CharField(max_length=KINDS, unique=True)
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.number}"
