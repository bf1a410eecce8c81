"""What was said to NPCs lately and has no turn: a process that stops leaves such records."""

from typing import Final

from evennia_ai import models
from evennia_ai.history.records import Record, RecordKind
from evennia_ai.store.conversations import ConversationRef, ref_of
from evennia_ai.store.record_rows import record_from
from evennia_ai.store.state import one_transaction

MOST_LOOKED_AT: Final = 2000
"""Of so many newest records at most the words of people are looked for."""


def unanswered(*, since: float, before: float) -> list[tuple[ConversationRef, Record]]:
    """What people said between two times and no turn was begun for, in order.

    StoreError: it cannot be read.
    """
    with one_transaction("looking for what nobody answered"):
        newest = models.Record.objects.order_by("-pk").values_list("pk", "kind", "created_at")
        said = [
            pk
            for pk, kind, created_at in newest[:MOST_LOOKED_AT]
            if kind == RecordKind.USER.value and since <= created_at < before
        ]
        turns = models.Turn.objects.filter(event_record_id__in=said)
        begun = set(turns.values_list("event_record_id", flat=True))
        left = [pk for pk in said if pk not in begun]
        rows = models.Record.objects.filter(pk__in=left).select_related("conversation")
        found = [(ref_of(row.conversation), record_from(row)) for row in rows.order_by("pk")]
    return [(where, record) for where, record in found if not record.is_erased]
