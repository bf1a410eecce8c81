"""The Django app of this package.

A game installs it with one line: `INSTALLED_APPS += ["evennia_ai"]`. A worker installs it too, but
without Evennia, so what needs Evennia is set up only if Evennia is installed.
"""

from pathlib import Path
from typing import Any, Final

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.core.signals import got_request_exception
from django.db.models.signals import post_migrate

from evennia_ai.services.settings.named_modules import BODIES, INPUT_FUNCTIONS, NODELAY, SERVICE

TEMPLATES: Final = Path(__file__).parent / "templates"


class EvenniaAIConfig(AppConfig):
    """The Django app.

    It registers the system checks, and adds our modules to the game's settings.
    """

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
        checks.register(_run_checks)
        # These modules run next to the game's own, in the Server process: the start and stop hooks,
        # and the settings of its network connections and web server. For the Portal process, the
        # game's settings must name them.
        _add_module(SERVICE, to="AT_SERVER_STARTSTOP_MODULE")
        _add_module(NODELAY, to="SERVER_SERVICES_PLUGIN_MODULES")
        _add_module(BODIES, to="SERVER_SERVICES_PLUGIN_MODULES")
        # Directly after Evennia's module, so that an input function of the game overrides ours.
        _add_module(INPUT_FUNCTIONS, to="INPUT_FUNC_MODULES", at=1)
        _add_templates()
        got_request_exception.connect(_log_page_error)


def _run_checks(**asked: Any) -> list[checks.CheckMessage]:
    """Run our system checks.

    They are imported here because they need most of the package, and few processes run them.
    """
    from evennia_ai.checks import check_all

    return check_all(**asked)


def _log_page_error(**sent: Any) -> None:
    """Log the error of a web page."""
    # This import also loads Evennia's logger, which needs Django's apps to be ready.
    from evennia_ai.web.page_errors import log_page_error

    log_page_error(**sent)


def _index_pages(*, apps: Any, **_: object) -> None:
    """Index pages again after `migrate`, if an update or a new language requires it."""
    from evennia_ai.services.settings.conf import conf
    from evennia_ai.store.knowledge.page_search import reindex_bases

    try:
        apps.get_model("evennia_ai", "KnowledgeBase")._meta.get_field("indexed_for")
    except (LookupError, FieldDoesNotExist):  # the database was migrated back
        return
    reindex_bases(conf().knowledge_languages)


def _add_module(module: str, *, to: str, at: int | None = None) -> None:
    """Add one of our modules to a setting that has one path or a list of paths.

    It goes to the end, or to the index `at`.
    """
    own = getattr(settings, to)
    modules = [own] if isinstance(own, str) else list(own)
    if module not in modules:
        modules.insert(len(modules) if at is None else at, module)
        setattr(settings, to, modules)


def _add_templates() -> None:
    """Let Django find our index page of the admin before Evennia's.

    Evennia's page lists only Evennia's tables.

    Django searches folders in their order, and folders of apps last. Our folder comes after the
    game's own and before Evennia's.
    """
    from evennia.settings_default import EVENNIA_DIR

    for engine in settings.TEMPLATES:
        folders = [str(folder) for folder in engine.get("DIRS", ())]
        own = [index for index, folder in enumerate(folders) if folder.startswith(EVENNIA_DIR)]
        if str(TEMPLATES) not in folders:
            folders.insert(own[0] if own else len(folders), str(TEMPLATES))
            engine["DIRS"] = folders
