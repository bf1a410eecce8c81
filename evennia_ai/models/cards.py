"""Tables of character cards: their files, those in force, revisions and assignments."""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF, SHA256


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
