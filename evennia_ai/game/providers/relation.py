"""What the speaker is to the NPC: a few words that its builder or its game gave it.

They stand in the NPC's Attribute `ai_relations`, a dictionary: the id of a character ("12" or
"#12") to words ("an old friend").
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.text import in_sentence, one_line
from evennia_ai.store.conversations import ConversationRef

ATTRIBUTE: Final = "ai_relations"
MOST_CHARACTERS: Final = 200


def relation(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """What the one who did what the event tells is to `npc`, "" where nothing was said of it."""
    if event is None or not event.speaker_ref:
        return ""
    words = _words(npc.attributes.get(ATTRIBUTE), event.speaker_ref)
    return f"What {in_sentence(event.speaker_name)} is to you: {words}." if words else ""


def _words(relations: Any, speaker_ref: str) -> str:
    """The words about one character; TypeError where the Attribute is no dictionary."""
    if not relations:
        return ""
    if not isinstance(relations, Mapping):
        raise TypeError(f"the Attribute {ATTRIBUTE} is {type(relations).__name__}, no dictionary")
    said = relations.get(speaker_ref) or relations.get(f"#{speaker_ref}") or ""
    return one_line(str(said))[:MOST_CHARACTERS].rstrip(" .")
