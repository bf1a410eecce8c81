"""The Django app: `INSTALLED_APPS += ["evennia_ai"]` is the one line a game needs."""

from django.apps import AppConfig


class EvenniaAIConfig(AppConfig):
    """Registers the system checks of our settings."""

    name = "evennia_ai"
    verbose_name = "Evennia AI"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evennia_ai import checks  # noqa: F401 - importing registers them
