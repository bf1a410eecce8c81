"""Pages of records: what happened to one NPC, over all its conversations, newest page first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai import models
from evennia_ai.history.projection import BOOKKEEPING
from evennia_ai.history.records import Record
from evennia_ai.store.conversations import ConversationRef, conversations_of
from evennia_ai.store.record_rows import records_from


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """One page of an NPC's records, oldest first; page 1 has the newest.

    `conversations` are those of the NPC by their id; `has_older` says whether there is a next page.
    """

    number: int
    records: tuple[Record, ...]
    conversations: Mapping[int, ConversationRef]
    has_older: bool


def record_page(npc_ref: str, number: int, *, size: int) -> RecordPage:
    """The page of this number, from 1 on; empty where there are not so many records.

    Texts of prompts are left out: they are shown with the turns that used them.
    """
    known = {one.id: one for one in conversations_of(npc_ref)}
    first = (number - 1) * size
    rows = list(_said(known).order_by("-pk")[first : first + size + 1])
    return RecordPage(
        number=number,
        records=records_from(reversed(rows[:size])),
        conversations=known,
        has_older=len(rows) > size,
    )


def _said(conversations: Mapping[int, ConversationRef]) -> Any:
    rows = models.Record.objects.filter(conversation_id__in=list(conversations))
    return rows.exclude(kind__in=[kind.value for kind in BOOKKEEPING])
