"""The table that pages of knowledge bases are searched by.

A migration makes what this database has for searching texts from it (`migrations/_page_search.py`).
"""

from django.db import models

from evennia_ai.models.knowledge import KnowledgePage


class KnowledgePageWords(models.Model):
    """The words of a page, folded, a blank between two; `body` has those of the title as well."""

    page = models.OneToOneField(KnowledgePage, on_delete=models.CASCADE, primary_key=True)
    title = models.TextField(blank=True)
    body = models.TextField(blank=True)

    class Meta:
        verbose_name_plural = "knowledge page words"

    def __str__(self) -> str:
        return f"words of page {self.page_id}"
