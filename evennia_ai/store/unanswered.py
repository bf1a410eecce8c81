"""What was said to NPCs lately and nobody answered: a process that stops leaves such records.

It has no turn, or one that the stop interrupted before anything of it was said or done.
"""

from typing import Final

from evennia_ai import models
from evennia_ai.history.records import Record, RecordKind
from evennia_ai.store.conversations import ConversationRef, ref_of
from evennia_ai.store.record_rows import record_from
from evennia_ai.store.state import one_transaction

_ACTS: Final = tuple(
    kind.value
    for kind in (
        RecordKind.ASSISTANT,
        RecordKind.FALLBACK,
        RecordKind.SPOKEN,
        RecordKind.TOOL_CALL,
    )
)

MOST_LOOKED_AT: Final = 2000
"""Of so many newest records at most the words of people are looked for."""


def unanswered(*, since: float, before: float) -> list[tuple[ConversationRef, Record]]:
    """What people said between two times and nothing was said or done about, in order.

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
        answered = {turn.event_record_id for turn in turns if not _came_to_nothing(turn)}
        left = [pk for pk in said if pk not in answered]
        rows = models.Record.objects.filter(pk__in=left).select_related("conversation")
        found = [(ref_of(row.conversation), record_from(row)) for row in rows.order_by("pk")]
    return [(where, record) for where, record in found if not record.is_erased]


def _came_to_nothing(turn: models.Turn) -> bool:
    """Whether a stop cut the turn short before its NPC did anything; it does one turn at a time."""
    if turn.state != "interrupted":
        return False
    meanwhile = models.Record.objects.filter(
        conversation_id=turn.conversation_id,
        created_at__gte=turn.created_at,
        created_at__lte=turn.ended_at or turn.created_at,
    )
    return not meanwhile.filter(kind__in=_ACTS).exists()
