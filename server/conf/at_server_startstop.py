"""What this game does when its server starts."""

from django.conf import settings


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
