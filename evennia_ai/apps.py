"""The Django app: `INSTALLED_APPS += ["evennia_ai"]` is the one line a game needs."""

from typing import Final

from django.apps import AppConfig
from django.conf import settings

SERVICE: Final = "evennia_ai.game.service"


class EvenniaAIConfig(AppConfig):
    """Registers the system checks of our settings and the hooks of the server's start and stop."""

    name = "evennia_ai"
    verbose_name = "Evennia AI"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evennia_ai import checks  # noqa: F401 - importing registers them

        _add_service()


def _add_service() -> None:
    """Have Evennia call our start and stop hooks beside the game's own, in the server alone."""
    own = settings.AT_SERVER_STARTSTOP_MODULE
    modules = [own] if isinstance(own, str) else list(own)
    if SERVICE not in modules:
        settings.AT_SERVER_STARTSTOP_MODULE = [*modules, SERVICE]
