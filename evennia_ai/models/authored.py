"""Tables of what people write: components, notes, cards, presets, lorebooks, scripts, personas.

Each kind has a table of its current values. Revisions, files and assignments of all kinds are in
one table each. `evennia_ai.store.authored.life_cycle` writes them.
"""

from django.db import models

from evennia_ai.models.core import KEY, KINDS, NAME, REF, SHA256


class Component(models.Model):
    """A prompt component in one scope."""

    scope_kind = models.CharField(max_length=KINDS, default="game")
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    registry_id = models.PositiveIntegerField()
    key = models.CharField(max_length=KEY)
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
    when = models.TextField(default="", blank=True)
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


class Note(models.Model):
    """An author's note of an NPC. Each note of one NPC has its own key."""

    npc_ref = models.CharField(max_length=REF)
    key = models.CharField(max_length=KEY, default="note")
    content = models.TextField(default="", blank=True)
    depth = models.PositiveIntegerField(default=4)
    role = models.CharField(max_length=KINDS, default="system")
    every = models.PositiveIntegerField(default=1)
    mode = models.CharField(max_length=KINDS, default="floating")
    place = models.CharField(max_length=80, default="", blank=True)
    order = models.IntegerField(default=100)
    when = models.TextField(default="", blank=True)
    enabled = models.BooleanField(default=True)
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["npc_ref", "key"], name="evennia_ai_note_key")
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} note {self.key}"


class SourceFile(models.Model):
    """A file of a card, a preset or a lorebook. It never changes, and each is stored once."""

    sha256 = models.CharField(max_length=SHA256, unique=True)
    """The hash of the bytes."""
    carrier = models.CharField(max_length=KINDS)
    """The format of the file: json, png, apng or charx."""
    content = models.BinaryField()
    """The bytes of the file. Empty for JSON, whose bytes are those of `source` in UTF-8."""
    source = models.TextField()
    """The JSON text in the file."""

    def __str__(self) -> str:
        return f"{self.carrier} {self.sha256[:12]}"


class Card(models.Model):
    """A character card in its current revision."""

    name = models.CharField(max_length=NAME, unique=True)
    file = models.ForeignKey(SourceFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    """The names of the card's grants, with spaces between them."""
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class Preset(models.Model):
    """A preset in its current revision."""

    name = models.CharField(max_length=NAME, unique=True)
    file = models.ForeignKey(SourceFile, on_delete=models.PROTECT)
    grants = models.TextField(default="", blank=True)
    """The names of the preset's grants, with spaces between them."""
    switches = models.TextField(default="{}")
    """JSON: for each prompt that a builder switched, by its identifier, true means on."""
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class Lorebook(models.Model):
    """A lorebook in its current revision."""

    name = models.CharField(max_length=NAME, unique=True)
    file = models.ForeignKey(SourceFile, on_delete=models.PROTECT)
    locks = models.TextField(default="", blank=True)
    """The Evennia lock string that decides who may see and change the lorebook; "" for none."""
    entry_locks = models.TextField(default="{}", blank=True)
    """JSON that maps the uid of an entry to its lock string."""
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class RegexScript(models.Model):
    """A regex script of the game in its current revision."""

    name = models.CharField(max_length=NAME, unique=True)
    position = models.PositiveIntegerField()
    """The place of the script in the order in which scripts run."""
    source = models.TextField()
    """The JSON text of the script's file."""
    revision = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.name


class Persona(models.Model):
    """What a player writes about their own character.

    No earlier text is kept, because the text belongs to the player.
    """

    owner_ref = models.CharField(max_length=REF, unique=True)
    content = models.TextField(default="", blank=True)
    place = models.CharField(max_length=KINDS, default="prompt")
    depth = models.PositiveIntegerField(default=2)
    kept = models.TextField(default="", blank=True)
    changed_at = models.FloatField()

    def __str__(self) -> str:
        return f"persona of {self.owner_ref}"


class Revision(models.Model):
    """One change of a component, context, note, card, preset or lorebook.

    It stays when the thing is removed. An import that waits for an approval is a revision too, with
    the action "imported".
    """

    kind = models.CharField(max_length=KINDS)
    scope_kind = models.CharField(max_length=KINDS, default="game")
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    key = models.CharField(max_length=NAME)
    number = models.PositiveIntegerField()
    action = models.CharField(max_length=KINDS)
    changed_by = models.CharField(max_length=NAME)
    changed_at = models.FloatField()
    value = models.TextField()
    """JSON: the fields of the thing after the change, or before its removal."""
    file = models.ForeignKey("SourceFile", on_delete=models.PROTECT, null=True, blank=True)
    """The file that belonged to the thing at that time, for cards, presets and lorebooks."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "scope_kind", "scope_ref", "key", "number"],
                name="evennia_ai_revision_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key} {self.number} {self.action}"


class Assignment(models.Model):
    """The use of a card, a preset or a lorebook in one scope."""

    kind = models.CharField(max_length=KINDS)
    key = models.CharField(max_length=NAME)
    scope_kind = models.CharField(max_length=KINDS)
    scope_ref = models.CharField(max_length=REF, default="", blank=True)
    greeting = models.PositiveIntegerField(null=True, blank=True)
    """The index of the card's greeting with which the NPC opens conversations."""
    assigned_by = models.CharField(max_length=NAME)
    assigned_at = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "key", "scope_kind", "scope_ref"], name="evennia_ai_assignment_once"
            ),
            models.UniqueConstraint(
                fields=["kind", "scope_kind", "scope_ref"],
                condition=models.Q(kind__in=("card", "preset")),
                name="evennia_ai_assigned_alone",
            ),
        ]
        indexes = [
            models.Index(fields=["kind", "scope_kind", "scope_ref"], name="evennia_ai_assigned_to")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key} at {self.scope_kind}:{self.scope_ref}"
