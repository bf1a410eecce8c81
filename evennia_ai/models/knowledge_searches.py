"""Tables of searches: what NPCs looked up in knowledge bases, and what is kept under lock of it.

A search in a restricted base keeps no passage and no title: those are in the vault, or nowhere.
Columns of JSON are texts.
"""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF, SHA256
from evennia_ai.models.history import Conversation
from evennia_ai.models.knowledge import KEY, TITLE

MODE = 40
REASON = 64


class KnowledgeSearch(models.Model):
    """One search; `ended_at` is None where the server stopped before it had an end.

    `query` is what the model asked; `result` is what it was told, as JSON, without the query where
    a base was restricted; `sources` are the pages it comes from, or "Source 1" and so on.
    """

    npc_ref = models.CharField(max_length=REF)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    turn = models.PositiveIntegerField()
    speaker_ref = models.CharField(max_length=REF, default="", blank=True)
    bases = models.TextField(default="[]")
    query = models.TextField(default="", blank=True)
    restricted = models.BooleanField(default=False)
    mode = models.CharField(max_length=MODE)
    decision = models.CharField(max_length=KINDS, default="", blank=True)
    reason = models.CharField(max_length=REASON, default="", blank=True)
    total = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    sources = models.TextField(default="[]")
    result = models.TextField(default="", blank=True)
    began_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "knowledge searches"
        indexes = [
            models.Index(fields=["conversation", "began_at"], name="evennia_ai_search_when"),
            models.Index(fields=["npc_ref", "turn"], name="evennia_ai_search_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} search {self.pk}"


class VaultedChunk(models.Model):
    """A passage of a restricted base as a mediator got it, for whoever the base's lock lets in."""

    search = models.ForeignKey(KnowledgeSearch, on_delete=models.CASCADE)
    base_key = models.CharField(max_length=KEY)
    place = models.PositiveIntegerField()
    title = models.CharField(max_length=TITLE)
    page_revision = models.CharField(max_length=NAME, default="", blank=True)
    sha256 = models.CharField(max_length=SHA256)
    content = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["base_key"], name="evennia_ai_vault_base")]

    def __str__(self) -> str:
        return f"{self.base_key} chunk {self.pk}"


class VaultReading(models.Model):
    """Somebody read the vault of a base: who, when, how many passages."""

    base_key = models.CharField(max_length=KEY)
    read_by = models.CharField(max_length=NAME)
    read_at = models.FloatField()
    chunks = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["base_key"], name="evennia_ai_vault_reading")]

    def __str__(self) -> str:
        return f"{self.base_key} read by {self.read_by}"
