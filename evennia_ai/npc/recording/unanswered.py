"""Finds words that NPCs heard before the server stopped and did not answer, and answers them.

An NPC answers words that were said to it less than a minute before the start, so players lose no
answer to a reload. Older words are not answered, because players would no longer expect that. Only
the records are known. Who was in conversation with whom is lost. NPCs with a greeting also greet
newcomers whom they had not greeted yet.
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
    """How many unanswered words the NPCs answer now, and how many were dropped."""

    answered: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """Unanswered words and recent arrivals from before the start of the server."""

    started_at: float
    """Seconds since 1970."""
    said: Sequence[tuple[ConversationRef, Record]]
    came: Sequence[tuple[ConversationRef, Record]]


def look_back(*, started_at: float) -> Before:
    """Read the unanswered words and arrivals, and their conversations. Any thread may call this.

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
    """Let NPCs answer the words that were said to them shortly before the start."""
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
            f" {answered} answered now, {dropped} dropped because they are too old or nobody waits"
        )
    return TakenUp(answered=answered, dropped=dropped)


def _greet_later(came: Iterable[tuple[ConversationRef, Record]]) -> None:
    """Let NPCs greet newcomers who got no greeting and have said nothing."""
    for where, record in came:
        npc = object_of(where.npc_ref)
        if not issubclass(type(npc), HasMind) or _spoke_since(where, record):
            continue
        heard = heard_again(npc, where, record)
        if heard is not None and not why_gone(npc, heard.event):
            npc.ai.attention.greeting.greet_later(heard)


def _spoke_since(where: ConversationRef, came: Record) -> bool:
    """True if the newcomer has spoken after arriving, or the arrival has left the history."""
    known = [record for message in windows(where.id).history if (record := record_of(message))]
    later = [record for record in known if int(record.id) >= int(came.id)]
    speaker = came.meta.get("speaker")
    spoke = any(one.kind is RecordKind.USER and one.meta.get("speaker") == speaker for one in later)
    return spoke or not any(one.id == came.id for one in later)


def _words_from_record(npc: NPC, where: ConversationRef, record: Record) -> CommittedEvent | None:
    """Return the record as the words of a person.

    Return None if it has no such words, or if it is no longer in the history.
    """
    before, meta = windows(where.id).history, record.meta
    if meta.get("event") not in SPOKEN or meta.get("hops"):
        return None
    counts = any(message.record == record.id for message in before)
    return heard_again(npc, where, record) if counts else None


def heard_again(
    npc: NPC,
    where: ConversationRef,
    record: Record,
    *,
    hint: str = "",
    joined: tuple[Record, ...] = (),
) -> CommittedEvent | None:
    """Return a record as the event that the NPC perceived. None if its speaker no longer exists.

    Args:
        hint: A builder's instruction for the answer.
        joined: Earlier lines that the same answer is for.
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
    return CommittedEvent(
        event=event,
        conversation=where,
        record=record,
        before=before,
        hint=hint,
        joined=joined,
    )
