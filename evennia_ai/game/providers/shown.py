"""What those present have shown the NPC before, where the conversation itself no more tells it.

A thing shown in the part of the history that a prompt still has stands there, and is not told
again. What was shown elsewhere, and what was left behind here, is told as long as its record is
among those that are kept in memory.
"""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.lived_through import records_of_room
from evennia_ai.game.naming import label_of
from evennia_ai.game.presence import seen_here
from evennia_ai.game.text import in_sentence, plain_name
from evennia_ai.history.records import Record
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef

KIND: Final = "show"
MOST_THINGS: Final = 5
"""Of one person, the ones that were shown last."""


def shown(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """What each of those present has shown `npc`, a line for each; "" where nobody did."""
    things: dict[str, list[str]] = {}
    for record in sorted(_shown(npc, conversation), key=_written):
        listed = things.setdefault(str(record.meta.get("speaker", "")), [])
        item = in_sentence(plain_name(str(record.meta["item"])))
        if item in listed:
            listed.remove(item)
        listed.append(item)
    lines = []
    for other in seen_here(npc) if things else ():
        if listed := things.get(str(other.id), []):
            name = in_sentence(label_of(npc, other))
            lines.append(f"What {name} has shown you before: {', '.join(listed[-MOST_THINGS:])}.")
    return "\n".join(lines)


def _shown(npc: Any, conversation: ConversationRef | None) -> Iterator[Record]:
    """The records of things that were shown to `npc` and that the prompt does not tell anyway."""
    for room in npc.ai.lately.rooms():
        is_here = conversation is not None and room.id == conversation.id
        before = conversations.cut(room) if is_here else None
        for record in records_of_room(room, before=before):
            if is_shown_to(record, str(npc.id)) and record.meta.get("item"):
                yield record


def is_shown_to(record: Record, npc_ref: str) -> bool:
    """Whether the record tells that something was shown to this NPC."""
    return record.meta.get("event") == KIND and record.meta.get("to") == npc_ref


def _written(record: Record) -> int:
    return int(record.id)
