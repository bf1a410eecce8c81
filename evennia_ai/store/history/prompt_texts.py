"""Find and erase stored texts of prompts that contain something to be erased.

The rest of the conversation stays. A record of the erasure says what was erased.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db.models import Q

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.seals import SEALS
from evennia_ai.models import ERASED_META
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationRef, ref_of
from evennia_ai.store.history.windows import windows

OF_MEMORIES: Final = "memories"
"""The value of "of" in the meta of an erasure's record, if only texts of memories were erased."""
OF_ROOMS: Final = "rooms"
OF_PERSONA: Final = "persona"
# Kinds of records that may contain such a text: texts of prompts, and results of observations.
_KINDS: Final = (RecordKind.CONTEXT_BLOCK, RecordKind.COMPONENT_REV, RecordKind.RUN_END)


def with_origins(origins: Iterable[str]) -> Q:
    """Return a query condition for records whose meta names one of these origins."""
    shown = Q()
    for origin in origins:
        shown |= Q(meta__contains=f'"{origin}"')
    return shown


def conversations_showing(shown: Q) -> list[ConversationRef]:
    """Return the conversations with texts of prompts that fulfil a condition."""
    rows = models.Record.objects.filter(kind__in=[kind.value for kind in _KINDS])
    found = rows.filter(shown).values("conversation_id")
    return [ref_of(row) for row in models.Conversation.objects.filter(pk__in=found)]


def erase_texts(
    conversation: ConversationRef,
    shown: Sequence[Q],
    *,
    of: str = OF_MEMORIES,
    by: Actor,
    seals: Mapping[str, str] | None = None,
) -> None:
    """Erase the texts of prompts that fulfil one of the conditions, and append a record of it.

    Args:
        shown: The conditions for texts to erase.
        seals: New seals of turns that lost words in the same erasure, by number.
    """
    rows = models.Record.objects.filter(
        conversation_id=conversation.id, kind__in=[kind.value for kind in _KINDS]
    )
    count = sum(rows.filter(one).exclude(meta=ERASED_META).erase() for one in shown)
    if count or seals:
        sealed = {SEALS: dict(seals)} if seals else {}
        meta = {"by": by.name, "of": of, "records": count, **sealed}
        told = NewRecord(kind=RecordKind.ERASURE, role="system", meta=meta)
        conversations.append_records(conversation, [told])
        windows.note_change(conversation.id)
