"""The table of names: by which name an NPC knows whom, and who bore it first."""

from django.db import models

from evennia_ai.models.columns import NAME, REF


class KnownName(models.Model):
    """One person whom an NPC met under a name; `number` 1 bore it first.

    `folded` is what is left of the name of all by which names look different and are not.
    """

    npc_ref = models.CharField(max_length=REF)
    folded = models.CharField(max_length=NAME)
    person_ref = models.CharField(max_length=REF)
    number = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["npc_ref", "folded", "person_ref"], name="evennia_ai_name_person"
            ),
            models.UniqueConstraint(
                fields=["npc_ref", "folded", "number"], name="evennia_ai_name_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.npc_ref} knows {self.person_ref} as {self.folded} {self.number}"
