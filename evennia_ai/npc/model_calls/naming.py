"""The name of this game, by which it is told from others at one router and in one library."""

from secrets import token_hex
from typing import Final

from django.conf import settings
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


def game_name() -> str:
    """What the game is called, for people who read of it in another game."""
    return " ".join(str(settings.SERVERNAME).split())[:200] or "without a name"
