"""Unanswered: what people said to NPCs before the server stopped, and nobody had answered yet.

Who was named, spoken to or whispered to less than a minute before the start answers now; a reload
then costs nobody their answer. What is older is left: an answer to it would come out of nowhere.
Only that is known which is in the records: who was in conversation with whom is not.
"""

from dataclasses import dataclass
from typing import Final

from evennia.utils import logger

from evennia_ai.game.recording.heard import CommittedEvent
from evennia_ai.game.senses.events import SPOKEN, Event, Line
from evennia_ai.game.senses.perception import client_of
from evennia_ai.game.senses.presence import (
    NPC,
    HasMind,
    is_alone_with,
    object_of,
    rank_of,
    room_ref_of,
    why_gone,
)
from evennia_ai.history.records import Record
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

FRESH_SECONDS: Final = 60.0
LOOKED_BACK_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenUp:
    """How much is answered now, and how much that was meant for an NPC is not any more."""

    answered: int = 0
    dropped: int = 0


def take_up(*, started_at: float) -> TakenUp:
    """Answer what was said to NPCs just before the process started, `started_at` since 1970.

    StoreError or DatabaseError: it cannot be read.
    """
    since = started_at - LOOKED_BACK_SECONDS
    answered = dropped = 0
    for where, record in past_turns.unanswered(since=since, before=started_at):
        npc = object_of(where.npc_ref)
        heard = _heard(npc, where, record) if issubclass(type(npc), HasMind) else None
        if heard is None or not npc.ai.attention.is_sure(heard.event):
            continue
        is_fresh = record.created_at >= started_at - FRESH_SECONDS
        if is_fresh and not why_gone(npc, heard.event):
            npc.ai.attention.consider(heard)
            answered += 1
        else:
            dropped += 1
    if answered or dropped:
        logger.log_msg(
            "evennia_ai: said to NPCs before the server stopped:"
            f" {answered} answered now, {dropped} not any more"
        )
    return TakenUp(answered=answered, dropped=dropped)


def _heard(npc: NPC, where: ConversationRef, record: Record) -> CommittedEvent | None:
    """What the record says that the NPC heard; None where no person said it, or they are gone."""
    meta = record.meta
    kind, speaker_ref = meta.get("event"), str(meta.get("speaker") or "")
    speaker = object_of(speaker_ref)
    if kind not in SPOKEN or meta.get("hops") or speaker is None:
        return None
    event = Event(
        kind=kind,
        speaker_ref=speaker_ref,
        speaker_name=record.name,
        speaker_rank=rank_of(speaker),
        text=record.body,
        room_ref=where.place_ref or (room_ref_of(npc) or "nowhere"),
        to_ref=str(meta.get("to") or ""),
        private=where.kind == "private",
        alone=is_alone_with(npc, speaker),
        language=str(meta.get("language") or ""),
        volume=str(meta.get("volume") or ""),
        client=client_of(speaker),
        line=Line(player_ref=speaker_ref),
    )
    before = windows(where.id).history
    return CommittedEvent(event=event, conversation=where, record=record, before=before)
