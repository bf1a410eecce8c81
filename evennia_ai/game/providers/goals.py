"""What the NPC is after at this moment, where its game keeps that in an Attribute.

The component `goals` says what an NPC wants as long as its builder lets it. What changes while the
game runs stands in the NPC's Attribute `ai_goals`: a text or a list of texts, the first the most
pressing one.
"""

from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.text import one_line
from evennia_ai.store.history.conversations import ConversationRef

ATTRIBUTE: Final = "ai_goals"
MOST_GOALS: Final = 10
MOST_CHARACTERS: Final = 300
"""Of one goal."""


def goals(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """What `npc` is after now, "" where its game says nothing."""
    told = npc.attributes.get(ATTRIBUTE)
    if not told:
        return ""
    texts = [told] if isinstance(told, str) else list(told)
    lines = [line for text in texts if (line := one_line(str(text))[:MOST_CHARACTERS])]
    if not lines:
        return ""
    return "\n".join(["What you are after now:", *(f"- {line}" for line in lines[:MOST_GOALS])])
