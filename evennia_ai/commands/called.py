"""What builders are told a conversation and those who take part in it are called."""

from evennia.utils.search import search_object

from evennia_ai.game.text import plain_name
from evennia_ai.store.conversations import ConversationRef


def in_words(conversation: ConversationRef) -> str:
    """Which conversation it is; what was whispered is marked so."""
    if conversation.kind == "private":
        who = name_of(conversation.partner_ref)
        return f"conversation {conversation.id}: WHISPERED, with {who} alone"
    return f"conversation {conversation.id}: in the room {name_of(conversation.place_ref)}"


def name_of(ref: str) -> str:
    """What somebody or something is called now, its number where it is gone."""
    found = search_object(f"#{ref}") if ref.isdecimal() else ()
    return f"{plain_name(found[0].key)} (#{ref})" if found else f"#{ref}"
