"""What the demo game does when its server starts, and when a player enters the game."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings


def at_server_start() -> None:
    """Show each player who enters the game what there is to try.

    This holds after each reload too.
    """
    from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET

    if settings.DEMO_WORLD:
        SIGNAL_OBJECT_POST_PUPPET.connect(_show_what_to_try, dispatch_uid="demo: what to try")


def _show_what_to_try(sender: Any, **kwargs: Any) -> None:
    from evennia_ai.commands.screens import escape_block

    tries = list(things_to_try(sender))
    if tries:
        sender.msg(escape_block("\n".join(("", "To try here:", *tries))))


def things_to_try(character: Any) -> Iterator[str]:
    """Return lines about what a character can try: talk to a person, look at a thing, the evening.

    Of people and things, the first one that the character sees is named.
    """
    from evennia_ai.npc.senses.presence import HasMind, is_character
    from evennia_ai.npc.senses.text import plain_name

    room = character.location
    if room is None:
        return
    kinds = (
        ("talk {} hello", lambda one: isinstance(one, HasMind)),
        ("look {}", lambda one: one.destination is None and not is_character(one)),
    )
    told = ("somebody will answer", "things tell more when looked at")
    seen = room.filter_visible(room.contents, character)
    for (form, fits), why in zip(kinds, told, strict=True):
        found = next((one for one in seen if fits(one)), None)
        if found is not None:
            yield f"  {form.format(plain_name(found.key).casefold()):<28}{why}"
    yield f"  {'evening':<28}what the tide does, and what you have found out"


def at_server_cold_start() -> None:
    """Build the missing parts of the demo world, inside the server, so that its caches have them.

    On the very first start, Evennia has just made its first rooms, and it restarts once afterwards.
    After that restart nothing is missing.
    """
    from evennia.server.models import ServerConfig

    if not settings.DEMO_WORLD:
        return
    if ServerConfig.objects.conf("last_initial_setup_step") != "done":
        return
    from world.build_demo import build

    build()
