"""The identifier of this game, which tells it from other games at a shared model router."""

from secrets import token_hex
from typing import Final

from evennia.server.models import ServerConfig

GAME_ID: Final = "evennia_ai_game_id"
"""Its name in Evennia's `ServerConfig`."""


def game_id() -> str:
    """Return a random identifier, created at the first call and stored."""
    found: str | None = ServerConfig.objects.conf(GAME_ID)
    if found is None:
        found = token_hex(16)
        ServerConfig.objects.conf(GAME_ID, found)
    return found
