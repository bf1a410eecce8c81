"""The table of errands: tools that take long, begun in one turn and told of in a later one."""

from django.db import models

from evennia_ai.models.columns import KINDS, REF
from evennia_ai.models.history import Conversation


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
