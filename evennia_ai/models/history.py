"""Tables of what happened: conversations, turns, errands, calls of models, and searches.

Old calls are added up by day. For a search in a restricted base, no passage and no title is stored
with the search; the vault may contain them.
"""

from typing import Any, Final, NoReturn

from django.db import models

from evennia_ai.engine.errors import AppendOnlyError
from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256, TITLE

MODE: Final = 40
REASON: Final = 64
ERASED_META: Final = '{"erased":true}'
"""The meta of a record whose words were erased. The database trigger compares it byte by byte."""


class Conversation(models.Model):
    """The history of one NPC with one room, or with one partner in private."""

    npc_ref = models.CharField(max_length=REF)
    kind = models.CharField(max_length=KINDS)
    partner_ref = models.CharField(max_length=REF, default="", blank=True)
    place_ref = models.CharField(max_length=REF, default="", blank=True)
    origin = models.CharField(max_length=64, default="", blank=True)
    opened_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "kind", "partner_ref", "place_ref"],
                name="evennia_ai_conversation_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} {self.kind} {self.partner_ref or self.place_ref}"


class LoreState(models.Model):
    """The state of lorebook entries in a conversation: sticky, cooling down or recently active."""

    conversation = models.OneToOneField(Conversation, on_delete=models.PROTECT)
    state = models.TextField(default="{}")
    """The state as JSON."""
    turn = models.PositiveIntegerField(default=0)
    """The number of the turn after whose prompt this state applies."""
    updated_at = models.FloatField()

    def __str__(self) -> str:
        return f"{self.conversation_id} turn {self.turn}"


class AppendOnlyQuerySet(models.QuerySet):
    """A query set whose rows are never changed or removed; `erase` only blanks words."""

    def erase(self) -> int:
        """Blank name, body and meta of the rows, and return the number of rows.

        The database trigger allows this change only; hashes and numbers stay.
        """
        return super().update(name="", body="", meta=ERASED_META)

    def update(self, **_: Any) -> NoReturn:
        raise AppendOnlyError("changed")

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnlyError("changed")

    def delete(self) -> NoReturn:
        raise AppendOnlyError("removed")


class Record(models.Model):
    """One message of a history. A trigger in the database refuses to change or remove it."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    segment = models.PositiveIntegerField(default=1)
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=KINDS)
    role = models.CharField(max_length=KINDS)
    name = models.CharField(max_length=NAME, default="", blank=True)
    body = models.TextField(default="", blank=True)
    meta = models.TextField(default="{}")
    content_sha256 = models.CharField(max_length=SHA256)
    """The hash of name, body and meta."""
    sha256 = models.CharField(max_length=SHA256)
    """The hash of kind, role, `content_sha256` and the `sha256` of the record before."""
    messages = models.PositiveIntegerField(default=0)
    """The number of messages in the history up to and including this one.

    A window is read from the end of the history, so each row needs this total.
    """
    users = models.PositiveIntegerField(default=0)
    """The number of messages with the role "user" in the history up to this one."""
    replies = models.PositiveIntegerField(default=0)
    """The number of messages with the role "assistant" in the history up to this one."""
    created_at = models.FloatField()

    objects = AppendOnlyQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "segment", "seq"], name="evennia_ai_record_seq"
            )
        ]
        indexes = [
            models.Index(
                fields=["conversation", "content_sha256"], name="evennia_ai_record_content"
            )
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}.{self.segment}.{self.seq} {self.kind}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError("changed")
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnlyError("removed")


class Turn(models.Model):
    """One turn of an NPC, with the prompt that was sent or was about to be sent."""

    npc_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()
    """The number of the turn, counted for each NPC from 1."""
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    event_record = models.ForeignKey(Record, on_delete=models.PROTECT, null=True, blank=True)
    state = models.CharField(max_length=KINDS, default="open")
    manifest = models.BinaryField()
    """The sources of the prompt (`TurnManifest`), as compressed JSON."""
    is_erased = models.BooleanField(default=False)
    """True if words were erased from the manifest.

    The database trigger lets a finished turn change only with this mark.
    """
    prompt_sha256 = models.CharField(max_length=SHA256)
    tokens = models.PositiveIntegerField()
    cut = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=NAME, default="", blank=True)
    outcome = models.TextField(default="", blank=True)
    created_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "number"], name="evennia_ai_turn_number")
        ]
        indexes = [
            models.Index(fields=["conversation", "number"], name="evennia_ai_turn_conversation"),
            models.Index(fields=["state"], name="evennia_ai_turn_state"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} turn {self.number} {self.state}"


class Errand(models.Model):
    """A tool call that takes longer than a turn.

    It begins in one turn. Its end is an event that the NPC answers in a later turn.
    """

    npc_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()
    """The number of the errand, counted for each NPC from 1."""
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    turn = models.PositiveIntegerField()
    """The number of the turn in which the model called the tool."""
    call = models.TextField()
    """The tool call as JSON, as in its record."""
    state = models.CharField(max_length=KINDS, default="open")
    result = models.TextField(default="", blank=True)
    """The result of the tool. The NPC may read it only in this conversation."""
    begun_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "number"], name="evennia_ai_errand_number")
        ]
        indexes = [models.Index(fields=["state"], name="evennia_ai_errand_state")]

    def __str__(self) -> str:
        return f"{self.npc_ref} errand {self.number} {self.state}"


class ModelCall(models.Model):
    """One finished call of a model.

    It is written once, and later added to the sum of its day.
    """

    npc_ref = models.CharField(max_length=REF)
    """The NPC for which the model was called."""
    player_ref = models.CharField(max_length=REF, default="", blank=True)
    """The player whose words the call answers; "" if it answers several players or none."""
    role = models.CharField(max_length=KINDS)
    profile = models.CharField(max_length=NAME, default="", blank=True)
    model = models.CharField(max_length=NAME, default="", blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    """The number of the NPC's turn that the call belongs to."""
    started_at = models.FloatField()
    seconds = models.FloatField()
    first_piece_seconds = models.FloatField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField()
    """Tokens of the prompt, including those read from the provider's cache and written to it."""
    cached_tokens = models.PositiveIntegerField(null=True, blank=True)
    """Tokens read from the provider's cache; null if the provider did not report them."""
    written_tokens = models.PositiveIntegerField(null=True, blank=True)
    """Tokens written to the provider's cache; null if the provider did not report them."""
    output_tokens = models.PositiveIntegerField()
    is_estimated = models.BooleanField(default=False)
    """True if we counted the tokens because the provider reported none."""
    whole_tokens = models.PositiveIntegerField(null=True, blank=True)
    """The tokens of the whole prompt, if the server read only a part of it; else null."""
    nanodollars = models.PositiveBigIntegerField(null=True, blank=True)
    """What the call cost by the prices of its time; null if the price was not known."""
    outcome = models.CharField(max_length=64)
    """`answered`, `cancelled`, `failed:<kind>`, or `unsent:<why>` if no model was asked."""
    event_record = models.ForeignKey(
        Record, on_delete=models.PROTECT, null=True, blank=True, db_index=False, related_name="+"
    )
    """The player's words that a limit left without an answer."""

    class Meta:
        indexes = [
            models.Index(fields=["started_at"], name="evennia_ai_call_time"),
            models.Index(fields=["npc_ref", "started_at"], name="evennia_ai_call_npc"),
            models.Index(fields=["player_ref", "started_at"], name="evennia_ai_call_player"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} {self.role} {self.model} {self.outcome}"


class ModelCallDay(models.Model):
    """The sum of an NPC's calls on one day, without the players whose words they answered."""

    day = models.PositiveIntegerField()
    """The number of the day, counted from 1970 in UTC."""
    npc_ref = models.CharField(max_length=REF)
    role = models.CharField(max_length=KINDS)
    model = models.CharField(max_length=NAME, default="", blank=True)
    calls = models.PositiveIntegerField()
    failures = models.PositiveIntegerField()
    input_tokens = models.PositiveBigIntegerField()
    cached_tokens = models.PositiveBigIntegerField()
    output_tokens = models.PositiveBigIntegerField()
    nanodollars = models.PositiveBigIntegerField(default=0)
    unpriced_calls = models.PositiveIntegerField(default=0)
    """The calls whose price was not known, so that `nanodollars` does not contain it."""

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
    """A halt: no model is called for an NPC, or for the whole game. A release removes the row."""

    npc_ref = models.CharField(max_length=REF, default="", blank=True, unique=True)
    """The NPC; "" for the whole game."""
    halted_by = models.CharField(max_length=NAME)
    halted_at = models.FloatField()
    reason = models.CharField(max_length=NAME, default="", blank=True)

    def __str__(self) -> str:
        return f"{self.npc_ref or 'the game'}: {self.halted_by}"


class PlayerReport(models.Model):
    """Words of an NPC that a player reported to the staff. An erasure blanks the words."""

    turn = models.ForeignKey(Turn, on_delete=models.PROTECT)
    """The turn in which the NPC said it."""
    prompt_sha256 = models.CharField(max_length=SHA256)
    words = models.TextField(default="", blank=True)
    """What the NPC said."""
    why = models.TextField(default="", blank=True)
    """What the player wrote about it."""
    reporter_ref = models.CharField(max_length=REF, default="", blank=True)
    """The player's character; "" after the player had themselves forgotten."""
    reported_at = models.FloatField()

    class Meta:
        indexes = [models.Index(fields=["reporter_ref"], name="evennia_ai_report_by")]

    def __str__(self) -> str:
        return f"report {self.pk} of {self.turn}"


class KnowledgeSearch(models.Model):
    """One search that an NPC made in knowledge bases."""

    npc_ref = models.CharField(max_length=REF)
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    turn = models.PositiveIntegerField()
    speaker_ref = models.CharField(max_length=REF, default="", blank=True)
    bases = models.TextField(default="[]")
    query = models.TextField(default="", blank=True)
    """The query that the model wrote; "" if a searched base is restricted."""
    restricted = models.BooleanField(default=False)
    mode = models.CharField(max_length=MODE)
    decision = models.CharField(max_length=KINDS, default="", blank=True)
    reason = models.CharField(max_length=REASON, default="", blank=True)
    total = models.PositiveIntegerField(default=0)
    sent = models.PositiveIntegerField(default=0)
    sources = models.TextField(default="[]")
    """JSON: the pages in the result. For a restricted base, "Source 1", "Source 2" and so on."""
    result = models.TextField(default="", blank=True)
    """JSON: the text that the model got."""
    began_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)
    """Null if the server stopped before the search ended."""

    class Meta:
        verbose_name_plural = "knowledge searches"
        indexes = [
            models.Index(fields=["conversation", "began_at"], name="evennia_ai_search_when"),
            models.Index(fields=["npc_ref", "turn"], name="evennia_ai_search_turn"),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} search {self.pk}"


class VaultedChunk(models.Model):
    """A passage of a restricted knowledge base, as the model that summarises it got it.

    The lock of the base decides who may read it.
    """

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
    """A note that somebody read passages in the vault of a knowledge base."""

    base_key = models.CharField(max_length=KEY)
    read_by = models.CharField(max_length=NAME)
    read_at = models.FloatField()
    chunks = models.PositiveIntegerField()

    class Meta:
        indexes = [models.Index(fields=["base_key"], name="evennia_ai_vault_reading")]

    def __str__(self) -> str:
        return f"{self.base_key} read by {self.read_by}"
