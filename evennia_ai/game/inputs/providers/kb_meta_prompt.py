"""Which knowledge bases the NPC may search: facts about them, nothing out of them.

How they are searched, and how an answer is made of what is found, stands in static texts: the
description of the tool and components.
"""

from functools import lru_cache

from evennia_ai.game.knowledge.guarding import held_keys, searchable, told_before
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC
from evennia_ai.knowledge import meta_prompt
from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.store.history.conversations import ConversationRef


def kb_meta_prompt(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """The block about the bases bound to `npc`, its place and the conversation, "" for none.

    Of those that it must guard safe metadata alone is told. An NPC without the tool to search them
    could do nothing with any of it, and is not asked (`registry.NEEDS`).
    """
    bases = told_before(npc, searchable(npc, conversation))
    return _block(bases, held_keys(npc, bases)) if bases else ""


@lru_cache(maxsize=256)
def _block(bases: tuple[BaseInfo, ...], held: frozenset[str]) -> str:
    """The block, made once for as long as nothing of these bases changes."""
    return meta_prompt.kb_meta_prompt(bases, restricted=held)
