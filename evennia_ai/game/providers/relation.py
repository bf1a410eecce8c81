"""What those present are to the NPC: a few words that its builder or its game gave it.

They stand in the NPC's Attribute `ai_relations`, a dictionary: the id of a character ("12" or
"#12") to words ("an old friend").
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.naming import label_of
from evennia_ai.game.presence import seen_here
from evennia_ai.game.text import in_sentence, one_line
from evennia_ai.store.history.conversations import ConversationRef

ATTRIBUTE: Final = "ai_relations"
MOST_CHARACTERS: Final = 200
MOST_PEOPLE: Final = 20


def relation(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """What they are to `npc`, the one who did what the event tells first; "" for nothing."""
    relations = npc.attributes.get(ATTRIBUTE)
    if not relations:
        return ""
    names: dict[str, str] = {}
    if event is not None and event.speaker_ref:
        names[event.speaker_ref] = event.speaker_name
    for other in seen_here(npc):
        names.setdefault(str(other.id), label_of(npc, other))
    told = ((name, _words(relations, ref)) for ref, name in names.items())
    lines = [f"What {in_sentence(name)} is to you: {words}." for name, words in told if words]
    return "\n".join(lines[:MOST_PEOPLE])


def _words(relations: Any, speaker_ref: str) -> str:
    """The words about one character; TypeError where the Attribute is no dictionary."""
    if not isinstance(relations, Mapping):
        raise TypeError(f"the Attribute {ATTRIBUTE} is {type(relations).__name__}, no dictionary")
    said = relations.get(speaker_ref) or relations.get(f"#{speaker_ref}") or ""
    return one_line(str(said))[:MOST_CHARACTERS].rstrip(" .")
