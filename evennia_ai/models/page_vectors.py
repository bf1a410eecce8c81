"""The table by which pages of knowledge bases are found by their meaning, where a game wants it."""

from django.db import models

from evennia_ai.models.columns import SHA256
from evennia_ai.models.knowledge import KnowledgePage

MODEL = 64


class KnowledgePageVector(models.Model):
    """What a model makes of one part of a page: a vector of numbers of 4 bytes.

    `sha256` is that of the page it was made from: where the page says something else by now, the
    vector is old. `place` is the place of the part among those of the page.
    """

    page = models.ForeignKey(KnowledgePage, on_delete=models.CASCADE)
    place = models.PositiveIntegerField()
    model = models.CharField(max_length=MODEL)
    sha256 = models.CharField(max_length=SHA256)
    vector = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["page", "model", "place"], name="evennia_ai_page_vector"
            )
        ]

    def __str__(self) -> str:
        return f"vector {self.place} of page {self.page_id}"
