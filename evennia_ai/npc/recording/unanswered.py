"""Words that NPCs heard before the server stopped and had not answered.

It also finds newcomers whom a greeting NPC had not greeted yet.

An NPC answers now what was said to it less than a minute before the start, so a reload costs nobody
their answer. Older words stay unanswered, because an answer would surprise everybody. Only the
records are known: who was in conversation with whom is lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evennia.utils import logger

from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record, RecordKind, speaker_known_in
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.senses.events import SPOKEN, Event, Line
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.perception import client_of
from evennia_ai.npc.senses.presence import (
    NPC,
    HasMind,
    is_alone_with,
    object_of,
    rank_of,
    room_ref_of,
    why_gone,
)
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

FRESH_SECONDS: Final = 60.0
LOOKED_BACK_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """How many unanswered words NPCs answer now, and how many are too old."""

    answered: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """What was said to NPCs before the start and not answered, and who arrived then."""

    started_at: float
    """In seconds since 1970."""
    said: Sequence[tuple[ConversationRef, Record]]
    came: Sequence[tuple[ConversationRef, Record]]


def look_back(*, started_at: float) -> Before:
    """Read what happened before the start, with its conversations. Any thread may call it.

    Raises:
        StoreError, DatabaseError: The database cannot be read.
    """
    since = started_at - LOOKED_BACK_SECONDS
    said = past_turns.unanswered_words(since=since, before=started_at)
    came = past_turns.arrivals_since(since=started_at - FRESH_SECONDS)
    for conversation_id in {where.id for where, _ in (*said, *came)}:
        windows(conversation_id)
    return Before(started_at=started_at, said=said, came=came)


def take_up(before: Before) -> TakenUp:
    """Let NPCs answer what was said to them shortly before the start."""
    answered = dropped = 0
    for where, record in before.said:
        npc = object_of(where.npc_ref)
        heard = _words_from_record(npc, where, record) if issubclass(type(npc), HasMind) else None
        if heard is None or not npc.ai.attention.is_sure(heard.event):
            continue
        is_fresh = record.created_at >= before.started_at - FRESH_SECONDS
        if is_fresh and not why_gone(npc, heard.event):
            npc.ai.attention.consider(heard)
            answered += 1
        else:
            dropped += 1
    _greet_later(before.came)
    if answered or dropped:
        logger.log_msg(
            "evennia_ai: lines to NPCs from before the server stopped:"
            f" {answered} answered now, {dropped} too old to answer"
        )
    return TakenUp(answered=answered, dropped=dropped)


def _greet_later(came: Iterable[tuple[ConversationRef, Record]]) -> None:
    """Let NPCs greet recent newcomers who got no greeting and said nothing."""
    for where, record in came:
        npc = object_of(where.npc_ref)
        if not issubclass(type(npc), HasMind) or _spoke_since(where, record):
            continue
        heard = heard_again(npc, where, record)
        if heard is not None and not why_gone(npc, heard.event):
            npc.ai.attention.greeting.greet_later(heard)


def _spoke_since(where: ConversationRef, came: Record) -> bool:
    """True if the newcomer spoke there since, or the record left the history."""
    known = [record for message in windows(where.id).history if (record := record_of(message))]
    later = [record for record in known if int(record.id) >= int(came.id)]
    speaker = came.meta.get("speaker")
    spoke = any(one.kind is RecordKind.USER and one.meta.get("speaker") == speaker for one in later)
    return spoke or not any(one.id == came.id for one in later)


def _words_from_record(npc: NPC, where: ConversationRef, record: Record) -> CommittedEvent | None:
    """Return the record as a person's words; None if it is not, or left the history."""
    before, meta = windows(where.id).history, record.meta
    if meta.get("event") not in SPOKEN or meta.get("hops"):
        return None
    counts = any(message.record == record.id for message in before)
    return heard_again(npc, where, record) if counts else None


def heard_again(
    npc: NPC, where: ConversationRef, record: Record, *, hint: str = ""
) -> CommittedEvent | None:
    """Return the record as the event that the NPC perceived; None if its actor is gone.

    Args:
        hint: A builder's instruction for the answer.
    """
    meta, speaker_ref = record.meta, str(record.meta.get("speaker") or "")
    speaker = object_of(speaker_ref) if speaker_ref else None
    if speaker is None and speaker_ref:
        return None
    event = Event(
        kind=str(meta.get("event") or ""),
        speaker_ref=speaker_ref,
        known_ref=speaker_known_in(record),
        speaker_name=record.name or (label_of(npc, speaker) if speaker else ""),
        speaker_rank=rank_of(speaker) if speaker else "",
        text=record.body,
        room_ref=where.place_ref or (room_ref_of(npc) or "nowhere"),
        to_ref=str(meta.get("to") or ""),
        private=where.kind == "private",
        alone=speaker is not None and is_alone_with(npc, speaker),
        hops=int(meta.get("hops") or 0),
        item=str(meta.get("item") or ""),
        data=meta.get("data") or {},
        language=str(meta.get("language") or ""),
        volume=str(meta.get("volume") or ""),
        client=client_of(speaker) if speaker else "",
        line=Line(player_ref=speaker_ref),
    )
    before = windows(where.id).history
    return CommittedEvent(event=event, conversation=where, record=record, before=before, hint=hint)
