"""Tables of background work: workers' proposals, token leases, breakers and workers.

The game and the workers both write to these tables, each to its own columns: a worker offers a
proposal, the game applies it.
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
    """The result of one background job. The job's name is unique, so a second result is refused."""

    idempotency = models.CharField(max_length=JOB_NAME, unique=True)
    kind = models.CharField(max_length=NAME)
    job = models.TextField()
    """The job as JSON."""
    state = models.CharField(max_length=KINDS, default=OFFERED)
    head_sha256 = models.CharField(max_length=64, default="", blank=True)
    body = models.TextField(default="", blank=True)
    """The proposed change as JSON."""
    calls = models.TextField(default="[]")
    """The model calls of the job, as JSON."""
    reason = models.TextField(default="", blank=True)
    """Why the proposal is empty, or why the game did not apply it."""
    worker = models.CharField(max_length=NAME)
    begun_at = models.FloatField()
    offered_at = models.FloatField()
    handled_at = models.FloatField(null=True, blank=True)
    """Empty until the game handles the proposal; set in the transaction that applies it."""

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
    """The tokens and calls that workers took from an NPC's limits in one minute."""

    minute = models.PositiveBigIntegerField()
    """The number of the minute, counted from 1970."""
    npc_ref = models.CharField(max_length=REF, default="", blank=True)
    """The NPC; "" for the limits of the whole game."""
    tokens = models.PositiveBigIntegerField(default=0)
    calls = models.PositiveIntegerField(default=0)
    game_tokens = models.PositiveBigIntegerField(default=0)
    """The tokens that the game itself used in the minute before."""
    game_calls = models.PositiveIntegerField(default=0)
    """The calls that the game itself made in the minute before."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["minute", "npc_ref"], name="evennia_ai_lease")
        ]

    def __str__(self) -> str:
        return f"minute {self.minute} {self.npc_ref}: {self.tokens} tokens"


class BreakerRow(models.Model):
    """The state of a model's circuit breaker.

    A worker that finds a model failing writes it, so that all other workers stop calling the model
    too.
    """

    name = models.CharField(max_length=NAME, unique=True)
    state = models.CharField(max_length=KINDS)
    since = models.FloatField()

    def __str__(self) -> str:
        return f"{self.name}: {self.state}"


class Worker(models.Model):
    """A worker that was seen at least once, with its version and abilities."""

    name = models.CharField(max_length=NAME, unique=True)
    version = models.PositiveIntegerField()
    kinds = models.TextField(default="", blank=True)
    """The kinds of jobs that the worker does, with spaces between them."""
    begun_at = models.FloatField()
    seen_at = models.FloatField()
    doing = models.CharField(max_length=JOB_NAME, default="", blank=True)
    """The name of the worker's current job."""

    def __str__(self) -> str:
        return self.name
