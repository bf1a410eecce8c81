"""The Django app: `INSTALLED_APPS += ["evennia_ai"]` is the one line a game needs.

A worker has it too, and no Evennia: what is Evennia's is hooked in where Evennia is.
"""

from pathlib import Path
from typing import Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.core.signals import got_request_exception
from django.db.models.signals import post_migrate

from evennia_ai.settings.named_modules import BODIES, INPUT_FUNCTIONS, NODELAY, SERVICE

TEMPLATES: Final = Path(__file__).parent / "templates"


class EvenniaAIConfig(AppConfig):
    """Registers the system checks of our settings and the hooks of the server's start and stop."""

    name = "evennia_ai"
    verbose_name = "Evennia AI"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evennia_ai.store.core.forking import close_files_before_forks

        if apps.is_installed("evennia.server"):
            self._ready_in_a_game()
        close_files_before_forks()
        post_migrate.connect(_index_pages, sender=self)

    def _ready_in_a_game(self) -> None:
        checks.register(_checked)
        # Next to the game's own, in the Server only: our start and stop hooks, and what its ends
        # of the wire and of the web need. What the Portal needs is in the game's settings.
        _add(SERVICE, to="AT_SERVER_STARTSTOP_MODULE")
        _add(NODELAY, to="SERVER_SERVICES_PLUGIN_MODULES")
        _add(BODIES, to="SERVER_SERVICES_PLUGIN_MODULES")
        # Directly after Evennia's, so that an input function of the game's own counts.
        _add(INPUT_FUNCTIONS, to="INPUT_FUNC_MODULES", at=1)
        _add_templates()
        got_request_exception.connect(_log_page_error)


def _checked(**asked: Any) -> list[checks.CheckMessage]:
    """What our checks say. What they need is most of the package, and few processes check."""
    from evennia_ai.checks import check_all

    return check_all(**asked)


def _log_page_error(**sent: Any) -> None:
    """Log what failed in a page. Evennia's logger can be imported only once the apps are ready."""
    from evennia_ai.web.page_errors import log_page_error

    log_page_error(**sent)


def _index_pages(*, apps: Any, **_: object) -> None:
    """After `migrate`, which an older version's tables and a new language both ask for."""
    from evennia_ai.settings.conf import conf
    from evennia_ai.store.knowledge.page_search import index_anew

    try:
        apps.get_model("evennia_ai", "KnowledgeBase")._meta.get_field("indexed_for")
    except (LookupError, FieldDoesNotExist):  # it was migrated back
        return
    index_anew(conf().knowledge_languages)


def _add(module: str, *, to: str, at: int | None = None) -> None:
    """Name a module of ours, last or at a place, in a setting that is one path or several."""
    own = getattr(settings, to)
    modules = [own] if isinstance(own, str) else list(own)
    if module not in modules:
        modules.insert(len(modules) if at is None else at, module)
        setattr(settings, to, modules)


def _add_templates() -> None:
    """Have our first page of the admin found before Evennia's own, which names its tables alone.

    Folders are searched in their order, those of apps last; the game's own stay before ours.
    """
    from evennia.settings_default import EVENNIA_DIR

    for engine in settings.TEMPLATES:
        folders = [str(folder) for folder in engine.get("DIRS", ())]
        own = [index for index, folder in enumerate(folders) if folder.startswith(EVENNIA_DIR)]
        if str(TEMPLATES) not in folders:
            folders.insert(own[0] if own else len(folders), str(TEMPLATES))
            engine["DIRS"] = folders
