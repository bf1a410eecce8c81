"""Tables of what builders write: components, contexts, cards, presets, lorebooks, notes."""

from django.db import models

from evennia_ai.models.core import KINDS, NAME, REF, SHA256


class Component(models.Model):
    """A prompt component in one scope."""

    scope_kind = models.CharField(max_length=KINDS, default="game")
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    registry_id = models.PositiveIntegerField()
    key = models.CharField(max_length=64)
    name = models.CharField(max_length=NAME, default="", blank=True)
    description = models.TextField(default="", blank=True)
    content = models.TextField(default="", blank=True)
    role = models.CharField(max_length=KINDS, default="system")
    enabled = models.BooleanField(default=True)
    is_static = models.BooleanField(default=False)
    injection_depth = models.PositiveIntegerField(default=0)
    injection_order = models.IntegerField(default=100)
    depth_counts = models.CharField(max_length=KINDS, default="messages")
    placement = models.CharField(max_length=KINDS, default="ordered")
    volatile = models.BooleanField(default=False)
    trust = models.CharField(max_length=KINDS, default="builder")
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

    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    key = models.CharField(max_length=64)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
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


class ContextRevision(models.Model):
    """One change of a context; the newest of each counts. `off` is a JSON list of keys."""

    context = models.CharField(max_length=KINDS)
    number = models.PositiveIntegerField()
    off = models.TextField(default="[]")
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "number"], name="evennia_ai_context_number")
        ]

    def __str__(self) -> str:
        return f"{self.context} {self.number}"


class Persona(models.Model):
    """What a player writes of their own character; theirs alone, so no revision of it is kept."""

    owner_ref = models.CharField(max_length=REF, unique=True)
    content = models.TextField(default="", blank=True)
    place = models.CharField(max_length=KINDS, default="prompt")
    depth = models.PositiveIntegerField(default=2)
    changed_at = models.FloatField()

    def __str__(self) -> str:
        return f"persona of {self.owner_ref}"


class CardFile(models.Model):
    """A card's file as it was given, byte for byte; never changed.

    `source` is the JSON of the card in it, `carrier` what the file is: json, png, apng, charx.
    """

    sha256 = models.CharField(max_length=SHA256, unique=True)
    carrier = models.CharField(max_length=KINDS)
    content = models.BinaryField()
    source = models.TextField()

    def __str__(self) -> str:
        return f"{self.carrier} {self.sha256[:12]}"


class Card(models.Model):
    """A character card that is in force; `grants` are the names of what it may do."""

    name = models.CharField(max_length=NAME, unique=True)
    file = models.ForeignKey(CardFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class CardRevision(models.Model):
    """One change of a card, or one import that waits; stays when the card is removed.

    `file` and `grants` are those of the card after the change, of an import those it would have.
    """

    name = models.CharField(max_length=NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
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

    npc_ref = models.CharField(max_length=REF, unique=True)
    card = models.ForeignKey(Card, on_delete=models.PROTECT)
    greeting = models.PositiveIntegerField(null=True, blank=True)
    assigned_by = models.CharField(max_length=NAME)
    assigned_at = models.FloatField()

    def __str__(self) -> str:
        return f"{self.npc_ref}: {self.card_id}"


class PresetFile(models.Model):
    """The JSON of a preset's file as it was given, without its secrets; never changed."""

    sha256 = models.CharField(max_length=SHA256, unique=True)
    source = models.TextField()

    def __str__(self) -> str:
        return self.sha256[:12]


class Preset(models.Model):
    """A preset that is in force.

    `grants` are the names of what it may do; `switches` is JSON, which prompts were switched on or
    off in the game, by their identifiers.
    """

    name = models.CharField(max_length=NAME, unique=True)
    file = models.ForeignKey(PresetFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    switches = models.TextField(default="{}")
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class PresetRevision(models.Model):
    """One change of a preset, or one import that waits; stays when the preset is removed.

    `file`, `grants` and `switches` are those of the preset after the change, of an import those it
    would have.
    """

    name = models.CharField(max_length=NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    file = models.ForeignKey(PresetFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    switches = models.TextField(default="{}")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "number"], name="evennia_ai_preset_number")
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.number} {self.action}"


class PresetAssignment(models.Model):
    """Which preset counts in a scope; each scope has one at most."""

    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    preset = models.ForeignKey(Preset, on_delete=models.PROTECT)
    assigned_by = models.CharField(max_length=NAME)
    assigned_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["scope_kind", "scope_ref"], name="evennia_ai_preset_assigned"
            )
        ]

    def __str__(self) -> str:
        return f"{self.preset_id} at {self.scope_kind}:{self.scope_ref}"


class Lorebook(models.Model):
    """A lorebook and who may see and change it and its entries; its text is its revision's.

    `locks` is an Evennia lock string, "" where there is none; `entry_locks` is JSON, such strings
    by the uid of the entry.
    """

    name = models.CharField(max_length=NAME, unique=True)
    sha256 = models.CharField(max_length=SHA256)
    revision = models.PositiveIntegerField(default=1)
    added_by = models.CharField(max_length=NAME)
    added_at = models.FloatField()
    locks = models.TextField(default="", blank=True)
    entry_locks = models.TextField(default="{}", blank=True)

    def __str__(self) -> str:
        return self.name


class LorebookRevision(models.Model):
    """One change of a lorebook; stays when the book is removed.

    `source` is the text as it was after the change, to the letter, "" for a removal. The locks are
    those the book had then.
    """

    name = models.CharField(max_length=NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
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
    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    attached_by = models.CharField(max_length=NAME)
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
    """An author's note of an NPC, whose notes are told apart by their keys."""

    npc_ref = models.CharField(max_length=REF)
    key = models.CharField(max_length=64, default="note")
    content = models.TextField(default="", blank=True)
    depth = models.PositiveIntegerField(default=4)
    role = models.CharField(max_length=KINDS, default="system")
    every = models.PositiveIntegerField(default=1)
    mode = models.CharField(max_length=KINDS, default="floating")
    place = models.CharField(max_length=80, default="", blank=True)
    order = models.IntegerField(default=100)
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1)
    changed_by = models.CharField(max_length=NAME)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "key"], name="evennia_ai_note_key")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.key}"


class NoteRevision(models.Model):
    """One change of an author's note; stays when the note is removed.

    `value` is JSON, what the note says since, "" for a removal.
    """

    npc_ref = models.CharField(max_length=REF)
    key = models.CharField(max_length=64, default="note")
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    value = models.TextField(default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "key", "number"], name="evennia_ai_note_number"
            )
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.key}: {self.number} {self.action}"
