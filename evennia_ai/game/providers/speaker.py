"""Who speaks: the name, the permission, the language and the volume of the event at hand."""

from typing import Any, Final

from evennia_ai.game.events import Event
from evennia_ai.game.text import in_sentence
from evennia_ai.store.history.conversations import ConversationRef

# How a volume that games have words for is told; any other stands as the game says it.
_LOUD: Final = {
    "mutter": "muttering",
    "quiet": "quietly",
    "whisper": "whispering",
    "loud": "loudly",
    "yell": "yelling",
    "shout": "shouting",
}


def speaker(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """Who does what the event tells, and how: all that its own line may not say."""
    if event is None:
        return ""
    if not event.speaker_ref:
        return "Nobody speaks to you."
    how = "acts" if event.is_happening else "whispers to you" if event.private else "speaks"
    language = f", in {in_sentence(event.language)}" if event.language else ""
    volume = f", {in_sentence(_LOUD.get(event.volume, event.volume))}" if event.volume else ""
    name = in_sentence(event.speaker_name)
    return f"Who {how}: {name} ({event.speaker_rank}){language}{volume}."
