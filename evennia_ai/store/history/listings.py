"""Lists of what happened to an NPC: its turns without their prompts, its records page by page."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Subquery

from evennia_ai import models
from evennia_ai.history.projection import BOOKKEEPING
from evennia_ai.history.records import Record
from evennia_ai.models import ERASED_META
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.history.conversations import ConversationRef, conversations_of
from evennia_ai.store.history.record_rows import records_from


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLine:
    """A turn in short."""

    npc_ref: str
    number: int
    state: str
    outcome: str
    model: str
    tokens: int
    """Those of its prompt by our own count."""
    created_at: float
    ended_at: float | None
    """None while it is under way."""
    event: str = ""
    """What it answers, "" where nobody knows any more."""
    speaker: str = ""
    """Whose that was, "" where nobody knows any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """One page of an NPC's turns, the newest first."""

    turns: tuple[TurnLine, ...]
    since: float
    """The moment from which on all else belongs on this page; the oldest page has 0."""
    until: float
    """The moment before which all else belongs on it; page 1 goes on until for ever."""
    has_older: bool


def newest_of_each(npc_refs: Iterable[str]) -> Mapping[str, TurnLine]:
    """The newest turn of each of these NPCs that had one; two queries, however many they are."""
    mine = models.Turn.objects.filter(npc_ref=OuterRef("npc_ref")).order_by("-number")
    spoke = models.Conversation.objects.filter(npc_ref__in=list(npc_refs)).order_by()
    newest = spoke.annotate(newest=Subquery(mine.values("pk")[:1])).values_list("newest", flat=True)
    keys = [key for key in newest.distinct() if key is not None]
    rows = models.Turn.objects.filter(pk__in=keys).defer("manifest")
    return {row.npc_ref: _line(row) for row in rows}


def turn_page(npc_ref: str, number: int, *, size: int) -> TurnPage:
    """The page of this number, from 1 on, with the events that the turns answer."""
    rows = models.Turn.objects.filter(npc_ref=npc_ref).defer("manifest")
    first = (number - 1) * size
    found = list(
        rows.select_related("event_record").order_by("-number")[
            max(0, first - 1) : first + size + 1
        ]
    )
    newer = found.pop(0) if number > 1 and found else None
    has_older = len(found) > size
    shown = found[:size]
    return TurnPage(
        turns=tuple(_line(row, **_event(row.event_record)) for row in shown),
        since=shown[-1].created_at if shown and has_older else 0.0,
        until=newer.created_at if newer is not None else float("inf"),
        has_older=has_older,
    )


def _line(row: models.Turn, *, event: str = "", speaker: str = "") -> TurnLine:
    return value_of(TurnLine, row, event=event, speaker=speaker)


def _event(record: models.Record | None) -> dict[str, Any]:
    if record is None or record.meta == ERASED_META:
        return {}
    event = json.loads(record.meta).get("event", "")
    return {"event": event if isinstance(event, str) else "", "speaker": record.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    """One page of an NPC's records, oldest first; page 1 has the newest."""

    number: int
    records: tuple[Record, ...]
    conversations: Mapping[int, ConversationRef]
    """Those of the NPC by their id."""
    has_older: bool
    """Whether there is a next page."""


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
