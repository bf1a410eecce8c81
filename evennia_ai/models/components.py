"""Tables of prompt components and their revisions."""

from django.db import models

from evennia_ai.models.columns import KINDS, NAME, REF


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
