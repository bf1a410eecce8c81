"""Where the NPC is, and who is there with it that it can see."""

from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.naming import label_of
from evennia_ai.game.presence import seen_here
from evennia_ai.game.text import in_sentence, plain_name
from evennia_ai.store.history.conversations import ConversationRef

MOST_COMPANY: Final = 20


def place(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """The place of `npc` and its company, "" where it is nowhere."""
    if npc.location is None:
        return ""
    here = in_sentence(plain_name(npc.location.get_display_name(npc)))
    text = f"Place: {here}."
    seen = seen_here(npc)
    if not seen:
        return text
    names = ", ".join(in_sentence(label_of(npc, other)) for other in seen[:MOST_COMPANY])
    more = f" and {len(seen) - MOST_COMPANY} more" if len(seen) > MOST_COMPANY else ""
    return f"{text} Present: {names}{more}."
