"""What time it is, really and in the game, to the minute.

It is none of the providers that are asked by default: every minute would give other facts, and with
them another prompt.
"""

from typing import Any

from evennia_ai.game.dates import game_minute, real_minute
from evennia_ai.game.events import Event
from evennia_ai.store.history.conversations import ConversationRef


def game_time(npc: Any, event: Event | None, conversation: ConversationRef | None) -> str:
    """The date and the minute, of the game first; a date no calendar has is left out."""
    in_game = game_minute()
    told = [f"In the game it is {in_game}."] if in_game else []
    return " ".join([*told, f"Outside of it, it is {real_minute()}."])
