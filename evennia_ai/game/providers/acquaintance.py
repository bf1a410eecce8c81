"""How well the NPC knows the speaker, where it remembers more than a prompt has room for.

What is recalled stands in the component `semantic_memories`; here is only that there is more.
"""

from typing import Any

from evennia_ai.game.events import Event
from evennia_ai.game.reminding import hours_now
from evennia_ai.game.text import in_sentence
from evennia_ai.memory.memories import Memory
from evennia_ai.settings.conf import conf
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.memory import memories

_HOURS_OF_A_DAY = 24


def acquaintance(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """How much `npc` remembers of the speaker and since when, "" where all of it can be told."""
    rules = conf().memory
    if event is None or not event.speaker_ref or not rules.enabled:
        return ""
    # What was whispered counts where it may be recalled: in private.
    known = [
        memory
        for memory in memories.held_by(str(npc.id)).candidates(
            speaker_ref=event.speaker_ref, present_refs=()
        )
        if memory.about == event.speaker_ref and (event.private or memory.learnt == "aloud")
    ]
    if len(known) <= rules.recall.most:
        return ""
    name = in_sentence(event.speaker_name)
    return f"What you remember of {name}: {len(known)} things, {_since(known)}."


def _since(known: list[Memory]) -> str:
    """For how many days of the game."""
    days = int((hours_now() - min(memory.created_at for memory in known)) / _HOURS_OF_A_DAY)
    return f"the first for {days} days" if days > 1 else "all of them new"
