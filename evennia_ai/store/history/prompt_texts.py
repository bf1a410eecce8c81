"""Texts of prompts that showed something which is to be forgotten: found by origin, and erased.

The rest of the conversation stays as it is; a record tells of the erasure and of what it was.
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
"""In the meta of a record of an erasure: what it is of, where not of all that stood before."""
OF_ROOMS: Final = "rooms"
OF_PERSONA: Final = "persona"
# What may hold such a text: prompts, and what models made memories of.
_KINDS: Final = (RecordKind.CONTEXT_BLOCK, RecordKind.COMPONENT_REV, RecordKind.RUN_END)


def holding(origins: Iterable[str]) -> Q:
    """What finds the records in whose meta one of these origins stands."""
    shown = Q()
    for origin in origins:
        shown |= Q(meta__contains=f'"{origin}"')
    return shown


def conversations_showing(shown: Q) -> list[ConversationRef]:
    """The conversations with texts of prompts that this finds."""
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
    """Erase the texts of prompts that one of `shown` finds, and append a record of it.

    Args:
        seals: New seals of the turns that lost words in the same erasure, by their numbers.
    """
    rows = models.Record.objects.filter(
        conversation_id=conversation.id, kind__in=[kind.value for kind in _KINDS]
    )
    count = sum(rows.filter(one).exclude(meta=ERASED_META).erase() for one in shown)
    if count or seals:
        sealed = {SEALS: dict(seals)} if seals else {}
        meta = {"by": by.name, "of": of, "records": count, **sealed}
        told = NewRecord(kind=RecordKind.ERASURE, role="system", meta=meta)
        conversations.append(conversation, [told])
        windows.written(conversation.id)
