"""The tables. Rows hold no behaviour and stay in `store`, whose functions return plain values.

Plain Django models, never Evennia's shared-memory ones: what is cached is the immutable value made
from rows (`evennia_ai.store.snapshots`). Texts that are hashed are text columns with our own JSON
in them, because a database may rewrite a JSON column.
"""

from typing import Any, Final, NoReturn

from django.db import models

from evennia_ai.history.errors import AppendOnlyError

_KINDS = 16
_REF = 255
_NAME = 200
_SHA256 = 64
ERASED_META: Final = '{"erased":true}'
"""The meta of a record whose words were erased; the trigger compares it to the letter."""


class StateRevision(models.Model):
    """A number per kind of authored thing, raised by every write, so that processes can tell."""

    name = models.CharField(max_length=_KINDS, unique=True)
    number = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} {self.number}"


class Component(models.Model):
    """A prompt component in one scope."""

    scope_kind = models.CharField(max_length=_KINDS, default="game")
    scope_ref = models.CharField(max_length=_REF, default="", blank=True)
    registry_id = models.PositiveIntegerField()
    key = models.CharField(max_length=64)
    name = models.CharField(max_length=_NAME, default="", blank=True)
    description = models.TextField(default="", blank=True)
    content = models.TextField(default="", blank=True)
    role = models.CharField(max_length=_KINDS, default="system")
    enabled = models.BooleanField(default=True)
    is_static = models.BooleanField(default=False)
    injection_depth = models.PositiveIntegerField(default=0)
    injection_order = models.IntegerField(default=100)
    placement = models.CharField(max_length=_KINDS, default="ordered")
    volatile = models.BooleanField(default=False)
    trust = models.CharField(max_length=_KINDS, default="builder")
    priority = models.IntegerField(default=100)
    required = models.BooleanField(default=False)
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope_kind", "scope_ref", "key"], name="evennia_ai_component_key"
            ),
            models.UniqueConstraint(
                fields=["scope_kind", "scope_ref", "registry_id"], name="evennia_ai_component_id"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.registry_id} {self.key}"


class ComponentRevision(models.Model):
    """One change of a component; stays when the component is removed."""

    scope_kind = models.CharField(max_length=_KINDS)
    scope_ref = models.CharField(max_length=_REF, default="", blank=True)
    key = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=_KINDS)
    changed_by = models.CharField(max_length=_NAME)
    changed_at = models.FloatField()
    old = models.TextField(default="", blank=True)
    new = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope_kind", "scope_ref", "key", "number"],
                name="evennia_ai_component_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.number} {self.action}"


class CardFile(models.Model):
    """A card's file as it was given, byte for byte; never changed.

    `source` is the JSON of the card in it, `carrier` what the file is: json, png, apng, charx.
    """

    sha256 = models.CharField(max_length=_SHA256, unique=True)
    carrier = models.CharField(max_length=_KINDS)
    content = models.BinaryField()
    source = models.TextField()

    def __str__(self) -> str:
        return f"{self.carrier} {self.sha256[:12]}"


class Card(models.Model):
    """A character card that is in force; `grants` are the names of what it may do."""

    name = models.CharField(max_length=_NAME, unique=True)
    file = models.ForeignKey(CardFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class CardRevision(models.Model):
    """One change of a card, or one import that waits; stays when the card is removed.

    `file` and `grants` are those of the card after the change, of an import those it would have.
    """

    name = models.CharField(max_length=_NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=_KINDS)
    changed_by = models.CharField(max_length=_NAME)
    changed_at = models.FloatField()
    file = models.ForeignKey(CardFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "number"], name="evennia_ai_card_number")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.action}"


class CardAssignment(models.Model):
    """Which card an NPC plays; `greeting` opens its conversations, None where none does."""

    npc_ref = models.CharField(max_length=_REF, unique=True)
    card = models.ForeignKey(Card, on_delete=models.PROTECT)
    greeting = models.PositiveIntegerField(null=True, blank=True)
    assigned_by = models.CharField(max_length=_NAME)
    assigned_at = models.FloatField()

    def __str__(self) -> str:
        return f"{self.npc_ref}: {self.card_id}"


class Lorebook(models.Model):
    """A lorebook, its text to the letter, and who may see and change it and its entries.

    `locks` is an Evennia lock string, "" where there is none; `entry_locks` is JSON, such strings
    by the uid of the entry.
    """

    name = models.CharField(max_length=_NAME, unique=True)
    source = models.TextField()
    sha256 = models.CharField(max_length=_SHA256)
    revision = models.PositiveIntegerField(default=1)
    added_by = models.CharField(max_length=_NAME)
    added_at = models.FloatField()
    locks = models.TextField(default="", blank=True)
    entry_locks = models.TextField(default="{}", blank=True)

    def __str__(self) -> str:
        return self.name


class LorebookRevision(models.Model):
    """One change of a lorebook; stays when the book is removed.

    `source` is the text as it was after the change, "" for a removal; the locks are those the
    book had then.
    """

    name = models.CharField(max_length=_NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=_KINDS)
    changed_by = models.CharField(max_length=_NAME)
    changed_at = models.FloatField()
    source = models.TextField(default="", blank=True)
    locks = models.TextField(default="", blank=True)
    entry_locks = models.TextField(default="{}", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "number"], name="evennia_ai_lorebook_number")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.action}"


class LorebookAttachment(models.Model):
    """Where a lorebook counts."""

    lorebook = models.ForeignKey(Lorebook, on_delete=models.CASCADE)
    scope_kind = models.CharField(max_length=_KINDS)
    scope_ref = models.CharField(max_length=_REF, default="", blank=True)
    attached_by = models.CharField(max_length=_NAME)
    attached_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["lorebook", "scope_kind", "scope_ref"], name="evennia_ai_attachment"
            )
        ]
        indexes = [models.Index(fields=["scope_kind", "scope_ref"], name="evennia_ai_attached_to")]

    def __str__(self) -> str:
        return f"{self.lorebook_id} at {self.scope_kind}:{self.scope_ref}"


class Note(models.Model):
    """An author's note of an NPC; `position` orders the notes of one NPC."""

    npc_ref = models.CharField(max_length=_REF)
    position = models.PositiveIntegerField(default=0)
    content = models.TextField(default="", blank=True)
    depth = models.PositiveIntegerField(default=4)
    role = models.CharField(max_length=_KINDS, default="system")
    every = models.PositiveIntegerField(default=1)
    mode = models.CharField(max_length=_KINDS, default="floating")
    revision = models.PositiveIntegerField(default=1)
    changed_by = models.CharField(max_length=_NAME)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "position"], name="evennia_ai_note_position")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.position}"


class NoteRevision(models.Model):
    """One change of an author's note; stays when the note is removed.

    `value` is JSON, what the note says since, "" for a removal.
    """

    npc_ref = models.CharField(max_length=_REF)
    position = models.PositiveIntegerField(default=0)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=_KINDS)
    changed_by = models.CharField(max_length=_NAME)
    changed_at = models.FloatField()
    value = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "position", "number"], name="evennia_ai_note_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.position}: {self.number} {self.action}"


class Conversation(models.Model):
    """What one NPC lives through in a room, or in private with one partner."""

    npc_ref = models.CharField(max_length=_REF)
    kind = models.CharField(max_length=_KINDS)
    partner_ref = models.CharField(max_length=_REF, default="", blank=True)
    place_ref = models.CharField(max_length=_REF, default="", blank=True)
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
    kind = models.CharField(max_length=_KINDS)
    role = models.CharField(max_length=_KINDS)
    name = models.CharField(max_length=_NAME, default="", blank=True)
    body = models.TextField(default="", blank=True)
    meta = models.TextField(default="{}")
    content_sha256 = models.CharField(max_length=_SHA256)
    sha256 = models.CharField(max_length=_SHA256)
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

    npc_ref = models.CharField(max_length=_REF)
    number = models.PositiveIntegerField()
    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT)
    event_record = models.ForeignKey(Record, on_delete=models.PROTECT, null=True, blank=True)
    state = models.CharField(max_length=_KINDS, default="open")
    manifest = models.TextField()
    prompt_sha256 = models.CharField(max_length=_SHA256)
    tokens = models.PositiveIntegerField()
    cut = models.PositiveIntegerField(default=0)
    model = models.CharField(max_length=_NAME, default="", blank=True)
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
