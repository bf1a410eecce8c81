"""The table of the lorekeeper's tasks: what its model was sent, and what it wrote.

A row is there before the model is asked, so that whatever can come of a task is known to have been
asked for. Columns of JSON are texts.
"""

from django.db import models

from evennia_ai.models.columns import REF, SHA256
from evennia_ai.models.knowledge import KEY


class LorekeeperTask(models.Model):
    """One task; `ended_at` is None while a model writes, and where the server stopped meanwhile.

    `request` is what was sent, message by message, `sha256` its hash; `context_meta` tells what is
    in it and why. `text` is what the model wrote, `drafts` the numbers of the pages in it; `error`
    says why there is no answer.
    """

    asked_by = models.CharField(max_length=REF)
    base_key = models.CharField(max_length=KEY)
    task = models.TextField()
    context_meta = models.TextField(default="{}")
    request = models.TextField()
    sha256 = models.CharField(max_length=SHA256)
    text = models.TextField(default="", blank=True)
    drafts = models.TextField(default="[]")
    error = models.TextField(default="", blank=True)
    began_at = models.FloatField()
    ended_at = models.FloatField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["asked_by"], name="evennia_ai_task_asked_by")]

    def __str__(self) -> str:
        return f"task {self.pk} of {self.asked_by} for {self.base_key}"
