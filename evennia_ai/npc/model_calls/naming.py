"""The random id of this game, by which a router that several games share tells them apart."""

from secrets import token_hex
from typing import Final

from evennia.server.models import ServerConfig

GAME_ID: Final = "evennia_ai_game_id"
"""The key of the id in Evennia's `ServerConfig`."""


def game_id() -> str:
    """Return the id of this game. The first call makes and stores it."""
    found: str | None = ServerConfig.objects.conf(GAME_ID)
    if found is None:
        found = token_hex(16)
        ServerConfig.objects.conf(GAME_ID, found)
    return found
