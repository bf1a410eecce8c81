"""Build the crowd for the load benchmark, inside the benchmark's game.

NPCs and players are distributed over thirty rooms. All have unique names.
"""

import os
from typing import Any, Final

ROOMS: Final = 30
PASSWORD: Final = "load-player-1"
WELCOME: Final = "The crowd is there."


def room_of(number: int) -> int:
    """Return the room of the NPC or player with this number."""
    return number % ROOMS


def npc_name(number: int) -> str:
    return f"N{number:03}"


def player_name(number: int) -> str:
    return f"P{number:03}"


def at_server_cold_start() -> None:
    """Build the crowd after the game's own set-up. A hook of Evennia."""
    from evennia.server.models import ServerConfig

    if ServerConfig.objects.conf("last_initial_setup_step") != "done":
        return
    if ServerConfig.objects.conf("load_world"):
        return
    npcs, players = int(os.environ["LOAD_NPCS"]), int(os.environ["LOAD_PLAYERS"])
    rooms = [_made("evennia.objects.objects.DefaultRoom", f"Hall {n}") for n in range(ROOMS)]
    for room in rooms:
        room.db.desc = "A hall with many people in it."
    for number in range(npcs):
        _made("evennia_ai.typeclasses.AINPC", npc_name(number), rooms[room_of(number)])
    for number in range(players):
        _make_player(number, rooms[room_of(number)])
    ServerConfig.objects.conf("load_world", value=True)
    print(f"demo world: {WELCOME}")


def at_server_start() -> None:
    """Do nothing, also at a reload. A hook of Evennia."""


def at_server_stop() -> None:
    """Do nothing. A hook of Evennia."""


def _made(typeclass: str, key: str, place: Any = None) -> Any:
    from evennia.utils.create import create_object

    return create_object(typeclass, key=key, location=place, home=place, nohome=place is None)


def _make_player(number: int, room: Any) -> None:
    from django.conf import settings
    from evennia.utils.create import create_account

    name = player_name(number)
    account = create_account(
        name, email="", password=PASSWORD, typeclass=settings.BASE_ACCOUNT_TYPECLASS
    )
    character = _made(settings.BASE_CHARACTER_TYPECLASS, name, room)
    character.locks.add(f"puppet:id({character.id}) or pid({account.id})")
    account.characters.add(character)
    account.db._last_puppet = character
