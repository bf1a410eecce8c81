"""What tables share, and the numbers by which processes tell that something was changed."""

from typing import Final

from django.db import models

KINDS: Final = 16
REF: Final = 255
NAME: Final = 200
SHA256: Final = 64
KEY: Final = 64
TITLE: Final = 255


class StateRevision(models.Model):
    """A number per kind of authored thing, raised by every write, so that processes can tell."""

    name = models.CharField(max_length=KINDS, unique=True)
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.number}"
