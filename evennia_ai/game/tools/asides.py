"""Asides: what an NPC says outside of the conversation whose turn it is.

A turn is recorded in one conversation. Words that are heard in another - whispered to somebody
while the room is answered, said aloud while a whisper is - are recorded there as well, before
anybody hears them: they are part of that conversation, are remembered in it, and go with it when
it is erased.
"""

from typing import Any

from evennia_ai.errors import HistoryConflictError
from evennia_ai.game.committed import ConversationKey, opened
from evennia_ai.game.tools.tool import Use
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.store.history import conversations


def room_talk(npc: Any) -> ConversationKey:
    """The conversation of the room where the NPC is."""
    return ConversationKey(
        kind="room", place_ref=str(npc.location.id) if npc.location else "nowhere"
    )


def noted_aside(use: Use, talk: ConversationKey, text: str) -> None:
    """Record that the NPC says `text` in `talk`, unless it is the conversation of the turn.

    StoreError: it was not recorded, so it must not be said.
    """
    where = opened(use.mind.ref, talk)
    if where.id == use.conversation.id:
        return
    said = NewRecord(
        kind=RecordKind.ASSISTANT,
        role="assistant",
        body=text,
        meta={"aside": True, "turn": use.turn},
    )
    try:
        conversations.append(where, [said])
    except HistoryConflictError:  # another process wrote since we read; now we know what
        conversations.append(where, [said])
