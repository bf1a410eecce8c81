"""The identifier of this game, which tells it from other games at one model router."""

from secrets import token_hex
from typing import Final

from evennia.server.models import ServerConfig

GAME_ID: Final = "evennia_ai_game_id"
"""Under which name Evennia's `ServerConfig` keeps it."""


def game_id() -> str:
    """A random name, made when it is first asked for and kept."""
    found: str | None = ServerConfig.objects.conf(GAME_ID)
    if found is None:
        found = token_hex(16)
        ServerConfig.objects.conf(GAME_ID, found)
    return found
