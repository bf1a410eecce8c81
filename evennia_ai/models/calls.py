"""Tables of what models were asked: the calls, of older ones a sum per day, and who asks none."""

from django.db import models

from evennia_ai.models.core import KINDS, NAME, REF
from evennia_ai.models.history import Record


class ModelCall(models.Model):
    """One call of a model that has ended; written once, summed up into its day when it is old.

    `npc_ref` is for whom it was made, `player_ref` whose words it answers, "" where nobody's alone;
    `turn` is the number of the NPC's turn it belongs to. `input_tokens` include those read from the
    provider's cache and those written to it, which are null where it did not tell. `is_estimated`
    marks tokens that we counted because the provider told none. `outcome` is `answered`,
    `cancelled`, `failed:<kind>`, or `unsent:<why>` where no model was asked. `event_record` is what
    was said, where a limit forbade to answer it.
    """

    npc_ref = models.CharField(max_length=REF)
    player_ref = models.CharField(max_length=REF, default="", blank=True)
    role = models.CharField(max_length=KINDS)
    profile = models.CharField(max_length=NAME, default="", blank=True)
    model = models.CharField(max_length=NAME, default="", blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    started_at = models.FloatField()
    seconds = models.FloatField()
    first_piece_seconds = models.FloatField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField()
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    written_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField()
    is_estimated = models.BooleanField(default=False)
    outcome = models.CharField(max_length=64)
    event_record = models.ForeignKey(
        Record, on_delete=models.PROTECT, null=True, blank=True, db_index=False, related_name="+"
    )

    class Meta:
        indexes = [
            models.Index(fields=["started_at"], name="evennia_ai_call_time"),
            models.Index(fields=["npc_ref", "started_at"], name="evennia_ai_call_npc"),
            models.Index(fields=["player_ref", "started_at"], name="evennia_ai_call_player"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} {self.role} {self.model} {self.outcome}"


class ModelCallDay(models.Model):
    """The sum of an NPC's calls of one day that are kept no longer; `day` counts from 1970, in UTC.

    Whose words they answered is not kept.
    """

    day = models.PositiveIntegerField()
    npc_ref = models.CharField(max_length=REF)
    role = models.CharField(max_length=KINDS)
    model = models.CharField(max_length=NAME, default="", blank=True)
    calls = models.PositiveIntegerField()
    failures = models.PositiveIntegerField()
    input_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    output_tokens = models.PositiveBigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["day", "npc_ref", "role", "model"], name="evennia_ai_call_day"
            )
        ]
        indexes = [models.Index(fields=["npc_ref", "day"], name="evennia_ai_call_day_npc")]

    def __str__(self) -> str:
        return f"{self.npc_ref} day {self.day}: {self.calls} calls"


class Halt(models.Model):
    """A halt that is in force; `npc_ref` is "" for the whole game. A release removes the row."""

    npc_ref = models.CharField(max_length=REF, default="", blank=True, unique=True)
    halted_by = models.CharField(max_length=NAME)
    halted_at = models.FloatField()
    reason = models.CharField(max_length=NAME, default="", blank=True)

    def __str__(self) -> str:
        return f"{self.npc_ref or 'the game'}: {self.halted_by}"
