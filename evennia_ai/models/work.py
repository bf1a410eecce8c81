"""Tables of background work by workers: what they offer, what they may spend, who they are.

The game and workers both write here, each its own columns: a worker offers, the game handles.
"""

from django.db import models

from evennia_ai.models.core import KINDS, NAME, REF

OFFERED = "offered"
APPLIED = "applied"
STALE = "stale"
FAILED = "failed"
LAPSED = "lapsed"
POISONED = "poisoned"
JOB_NAME = 255


class Proposal(models.Model):
    """What a worker made of one job; unique by the job's name, so a second answer is none.

    `job`, `body` and `calls` are JSON; `reason` says why there is nothing to apply, or why it was
    not. A worker leaves `handled_at` empty; the game fills it in the transaction that applies it.
    """

    idempotency = models.CharField(max_length=JOB_NAME, unique=True)
    kind = models.CharField(max_length=NAME)
    job = models.TextField()
    state = models.CharField(max_length=KINDS, default=OFFERED)
    head_sha256 = models.CharField(max_length=64, default="", blank=True)
    body = models.TextField(default="", blank=True)
    calls = models.TextField(default="[]")
    reason = models.TextField(default="", blank=True)
    worker = models.CharField(max_length=NAME)
    begun_at = models.FloatField()
    offered_at = models.FloatField()
    handled_at = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["id"],
                name="evennia_ai_proposal_open",
                condition=models.Q(handled_at=None),
            ),
            models.Index(
                fields=["idempotency"],
                name="evennia_ai_proposal_poisoned",
                condition=models.Q(state=POISONED),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.idempotency} {self.state}"


class TokenLease(models.Model):
    """What workers took of an NPC's tokens and calls in one minute, in minutes since 1970.

    `npc_ref` is "" for those of the whole game. `game_tokens` and `game_calls` are what the game
    said it used of them in the minute before.
    """

    minute = models.PositiveBigIntegerField()
    npc_ref = models.CharField(max_length=REF, default="", blank=True)
    tokens = models.PositiveBigIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    game_tokens = models.PositiveBigIntegerField(default=0)
    game_calls = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["minute", "npc_ref"], name="evennia_ai_lease")
        ]

    def __str__(self) -> str:
        return f"minute {self.minute} {self.npc_ref}: {self.tokens} tokens"


class BreakerRow(models.Model):
    """How the breaker of a model stands that a worker found failing; all workers heed it."""

    name = models.CharField(max_length=NAME, unique=True)
    state = models.CharField(max_length=KINDS)
    since = models.FloatField()

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"


class Worker(models.Model):
    """A worker that was seen: of which version, what it can do and what it does."""

    name = models.CharField(max_length=NAME, unique=True)
    version = models.PositiveIntegerField()
    kinds = models.TextField(default="", blank=True)
    begun_at = models.FloatField()
    seen_at = models.FloatField()
    doing = models.CharField(max_length=JOB_NAME, default="", blank=True)

    def __str__(self) -> str:
        return self.name
