"""What this game does when its server starts, and from then on when somebody comes into play."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings


def at_server_start() -> None:
    """Have everybody who comes into play shown what there is to try; after each reload too."""
    from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET

    if settings.DEMO_WORLD:
        SIGNAL_OBJECT_POST_PUPPET.connect(_show_what_to_try, dispatch_uid="demo: what to try")


def _show_what_to_try(sender: Any, **kwargs: Any) -> None:
    from evennia_ai.commands.screens import shown_block

    tries = list(things_to_try(sender))
    if tries:
        sender.msg(shown_block("\n".join(("", "To try here:", *tries))))


def things_to_try(character: Any) -> Iterator[str]:
    """A line each for somebody to talk to, something to look at and a way to go, where there are.

    Of each kind it is the first that the character can see.
    """
    from evennia_ai.npc.senses.presence import HasMind
    from evennia_ai.npc.senses.text import plain_name

    room = character.location
    if room is None:
        return
    kinds = (
        ("talk {} hello", lambda one: isinstance(one, HasMind)),
        ("look {}", lambda one: one.is_typeclass(settings.BASE_OBJECT_TYPECLASS, exact=True)),
        ("{}", lambda one: one.destination is not None),
    )
    told = ("somebody will answer", "things tell more when looked at", "there is more that way")
    seen = room.filter_visible(room.contents, character)
    for (form, fits), why in zip(kinds, told, strict=True):
        found = next((one for one in seen if fits(one)), None)
        if found is not None:
            yield f"  {form.format(plain_name(found.key).casefold()):<28}{why}"


def at_server_cold_start() -> None:
    """Build what is missing of the demo world, inside the server, so that its caches know it.

    On the very first start Evennia has just made the first rooms, and restarts once afterwards;
    that restart comes back here and finds nothing missing.
    """
    from evennia.server.models import ServerConfig

    if not settings.DEMO_WORLD:
        return
    if ServerConfig.objects.conf("last_initial_setup_step") != "done":
        return
    from world.build_demo import build

    build()
