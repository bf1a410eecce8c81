"""Where the NPC is, and who is there with it that it can see."""

from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.presence import seen_here
from evennia_ai.game.text import in_sentence, plain_name
from evennia_ai.store.conversations import ConversationRef

MOST_COMPANY: Final = 20


def place(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """The place of `npc` and its company, "" where it is nowhere."""
    if npc.location is None:
        return ""
    text = f"Place: {_called(npc, npc.location)}."
    seen = seen_here(npc)
    if not seen:
        return text
    names = ", ".join(_called(npc, other) for other in seen[:MOST_COMPANY])
    more = f" and {len(seen) - MOST_COMPANY} more" if len(seen) > MOST_COMPANY else ""
    return f"{text} Present: {names}{more}."


def _called(npc: Any, seen: Any) -> str:
    """What `npc` calls somebody or a place, as it stands in a sentence."""
    return in_sentence(plain_name(seen.get_display_name(npc)))
