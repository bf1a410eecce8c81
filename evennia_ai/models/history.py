"""Tables of what happened: conversations, prompts of turns, errands, calls of models, searches.

An errand is a tool that takes long, begun in one turn and told of in a later one. Of older calls a
sum per day is kept; a halt says for whom no model is asked. A search in a restricted base keeps no
passage and no title: those are in the vault, or nowhere.
"""

from typing import Any, Final, NoReturn

from django.db import models

from evennia_ai.engine.errors import AppendOnlyError
from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256, TITLE

MODE: Final = 40
REASON: Final = 64
ERASED_META: Final = '{"erased":true}'
"""The meta of a record whose words were erased; the trigger compares it to the letter."""


class Conversation(models.Model):
    """What one NPC lives through in a room, or in private with one partner."""

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
    """What the lore of a conversation remembers: sticky and resting entries, what was active.

    `state` is JSON; `turn` is the number of the turn whose prompt left it so.
    """

    conversation = models.OneToOneField(Conversation, on_delete=models.PROTECT)
    state = models.TextField(default="{}")
    turn = models.PositiveIntegerField(default=0)
    updated_at = models.FloatField()

    def __str__(self) -> str:
        return f"{self.conversation_id} turn {self.turn}"


class AppendOnlyQuerySet(models.QuerySet):
    """Rows that are never changed, in bulk neither; their words may be erased."""

    def erase(self) -> int:
        """Erase name, body and meta of the rows; how many there are.

        The one change that the database's trigger lets through: hashes and places stay.
        """
        return super().update(name="", body="", meta=ERASED_META)

    def update(self, **_: Any) -> NoReturn:
        raise AppendOnlyError("changed")

    def bulk_update(self, *_: Any, **__: Any) -> NoReturn:
        raise AppendOnlyError("changed")

    def delete(self) -> NoReturn:
        raise AppendOnlyError("removed")


class Record(models.Model):
    """One thing that happened. Never changed, never removed: a trigger refuses it as well.

    `sha256` covers kind, role, the hash of name, body and meta (`content_sha256`), and the record
    before it. `messages`, `users` and `replies` count the messages of the history up to here, and
    those of role user and assistant among them: a window is opened from the end.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    segment = models.PositiveIntegerField(default=1)
    seq = models.PositiveIntegerField()
    kind = models.CharField(max_length=KINDS)
    role = models.CharField(max_length=KINDS)
    name = models.CharField(max_length=NAME, default="", blank=True)
    body = models.TextField(default="", blank=True)
    meta = models.TextField(default="{}")
    content_sha256 = models.CharField(max_length=SHA256)
    sha256 = models.CharField(max_length=SHA256)
    messages = models.PositiveIntegerField(default=0)
    users = models.PositiveIntegerField(default=0)
    replies = models.PositiveIntegerField(default=0)
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
    """One prompt that was sent, or was about to be; `number` counts the NPC's own turns."""

    npc_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    event_record = models.ForeignKey(Record, on_delete=models.PROTECT, null=True, blank=True)
    state = models.CharField(max_length=KINDS, default="open")
    manifest = models.TextField()
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
    """What an NPC had begun with a tool that takes long; `number` counts those of the NPC.

    `call` is the tool call as its record has it, as JSON; `turn` the number of the turn that made
    it. `result` is what came of it, which belongs to the conversation alone.
    """

    npc_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    turn = models.PositiveIntegerField()
    call = models.TextField()
    state = models.CharField(max_length=KINDS, default="open")
    result = models.TextField(default="", blank=True)
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
    """One call of a model that has ended; written once, summed up into its day when it is old.

    `npc_ref` is for whom it was made, `player_ref` whose words it answers, "" where nobody's alone;
    `turn` is the number of the NPC's turn it belongs to. `input_tokens` include those read from the
    provider's cache and those written to it, which are null where it did not tell. `is_estimated`
    marks tokens that we counted because the provider told none. `whole_tokens` is what the prompt
    should have had, null unless the server read only part of it. `outcome` is `answered`,
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
    whole_tokens = models.PositiveIntegerField(null=True, blank=True)
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
