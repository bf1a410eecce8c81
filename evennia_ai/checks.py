"""System checks, which Django runs when the server starts.

A wrong setting is an error and stops the start. A setting that lets strangers harm the game, or
that slows the game down, is a warning. Each message has a hint.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core import checks
from django.utils.module_loading import import_string

from evennia_ai.services.settings.conf import (
    Problem,
    conf,
    setting_doubts,
    setting_problems,
    unknown_names,
)
from evennia_ai.services.settings.named_modules import BODIES, NODELAY


def check_all(**asked: Any) -> list[checks.CheckMessage]:
    """Run all checks of evennia_ai and return their messages."""
    every = (
        check_settings,
        check_tools,
        check_context_providers,
        check_database,
        check_connections,
    )
    return [message for check in every for message in check(**asked)]


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each wrong setting, and a warning for each doubtful or unknown one."""
    found: list[checks.CheckMessage] = [
        checks.Error(problem.message, hint=problem.hint, id=f"evennia_ai.{problem.id}")
        for problem in setting_problems()
    ]
    found += [
        checks.Warning(doubt.message, hint=doubt.hint, id=f"evennia_ai.{doubt.id}")
        for doubt in setting_doubts()
    ]
    found += [
        checks.Warning(
            f"{name} is not a setting of evennia_ai.",
            hint=f"Did you mean {near}?" if near else "Remove it, or correct its name.",
            id="evennia_ai.W001",
        )
        for name, near in unknown_names()
    ]
    return found


def check_tools(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each of the game's own tools that cannot be used."""
    if setting_problems():
        return []
    from evennia_ai.npc.filtering import function_problem
    from evennia_ai.npc.tools.registry import registry_of

    set_to = conf()
    found: list[checks.CheckMessage] = [
        checks.Error(
            f"EVENNIA_AI_TOOLS: {problem}.",
            hint="Correct the class, or remove it from the setting (docs/build/tools.md).",
            id="evennia_ai.E052",
        )
        for problem in registry_of(set_to.tools).problems
    ]
    wrong = function_problem(set_to.use_item)
    if wrong:
        hint = "It must be the dotted path of a function of user, item and target."
        found.append(
            checks.Error(f"EVENNIA_AI_USE_ITEM: {wrong}.", hint=hint, id="evennia_ai.E053")
        )
    for path in (set_to.filter.heard, set_to.filter.said):
        if wrong := function_problem(path):
            hint = "It must be the dotted path of a function of one value (docs/run/privacy.md)."
            found.append(
                checks.Error(f"EVENNIA_AI_FILTER: {wrong}.", hint=hint, id="evennia_ai.E142")
            )
    return found


def check_context_providers(**_: Any) -> list[checks.CheckMessage]:
    """Return an error for each provider of facts that cannot be called."""
    if setting_problems():
        return []
    from evennia_ai.npc.inputs.providers import SETTING, providers_of

    hint = "Correct it, or take it out of the setting; it must be a function of npc, event and"
    return [
        checks.Error(f"{SETTING}: {problem}.", hint=f"{hint} conversation.", id="evennia_ai.E063")
        for problem in providers_of(conf().context_providers).problems
    ]


def check_database(**_: Any) -> list[checks.CheckMessage]:
    """Return an error if the game's PostgreSQL cannot be reached or used."""
    from django.db import connection

    from evennia_ai.store.core.postgresql.problems import problem_of

    problem = problem_of(connection)
    if problem is None:
        return []
    return [checks.Error(problem.message, hint=problem.hint, id="evennia_ai.E096")]


def check_connections(**_: Any) -> list[checks.CheckMessage]:
    """Return a warning for each setting that lets strangers harm the game or slows it down."""
    return [
        checks.Warning(doubt.message, hint=doubt.hint, id=f"evennia_ai.{doubt.id}")
        for doubt in [
            *origin_doubts(),
            *line_doubts(),
            *size_doubts(),
            *wire_doubts(),
            *database_doubts(),
            *error_doubts(),
        ]
    ]


_PAGE: Final = "docs/run/security.md of evennia_ai explains it."
_EVENNIAS: Final = ("evennia", "autobahn", "twisted")
"""Packages whose classes accept connections from every web page."""

_OURS: Final = "evennia_ai.web.portal"
_BASIC: Final = "rest_framework.authentication.BasicAuthentication"


_SESSIONS: Final = "evennia_ai.npc.typed_lines.BoundedSessions"

WAL: Final = "PRAGMA journal_mode=WAL"

SAFE_LINE: Final = 1_000
"""The longest typed line in which Evennia finds links in less than a tenth of a second."""


class Client(NamedTuple):
    """A setting for a client's class, the method that can refuse web pages, and our class."""

    setting: str
    method: str
    ours: str

    @property
    def used(self) -> Any:
        """The class that this game has in the setting."""
        return import_string(getattr(settings, self.setting))

    @property
    def refuses_pages(self) -> bool:
        """True if the game uses a method that is not Evennia's.

        Ours refuses foreign pages; one of the game's own is assumed to do so too.
        """
        owner = next(one for one in self.used.__mro__ if self.method in vars(one))
        return owner.__module__.split(".")[0] not in _EVENNIAS

    @property
    def is_ours(self) -> bool:
        """True if the game's class is ours or a subclass of ours."""
        return any(f"{one.__module__}.{one.__qualname__}" == self.ours for one in self.used.__mro__)


_WEBSOCKET: Final = Client("WEBSOCKET_PROTOCOL_CLASS", "onConnect", f"{_OURS}.OwnOriginsWebSocket")
_AJAX: Final = Client("AJAX_CLIENT_CLASS", "render_POST", f"{_OURS}.OwnOriginsAjax")
_TELNET: Final = Client(
    "TELNET_PROTOCOL_CLASS",
    "applicationDataReceived",
    "evennia_ai.web.telnet.TelnetWithoutHttp",
)


def origin_doubts() -> list[Problem]:
    """Return a warning for each way in which web pages of strangers can use this game."""
    return [*_open_clients(), *_unnamed_hosts(), *_guessable_passwords(), *_open_telnet()]


def line_doubts() -> list[Problem]:
    """Return a warning if markup in a typed line can block the game."""
    from evennia.server.sessionhandler import SessionHandler

    used = import_string(settings.PORTAL_SESSION_HANDLER_CLASS)
    is_bounded = used.clean_senddata is not SessionHandler.clean_senddata
    if is_bounded and settings.MXP_OUTGOING_ONLY:
        return []
    if settings.MXP_OUTGOING_ONLY:
        how = f'PORTAL_SESSION_HANDLER_CLASS = "{_SESSIONS}" removes such markup quickly.'
    else:
        how = (
            f'MXP_OUTGOING_ONLY = True and PORTAL_SESSION_HANDLER_CLASS = "{_SESSIONS}"'
            " remove such markup."
        )
    how = f"{how} Or at least set MAX_CHAR_LIMIT = {SAFE_LINE}. {_PAGE}"
    if 0 < settings.MAX_CHAR_LIMIT <= SAFE_LINE:
        return []
    return [
        Problem(
            id="W024",
            message=f"MAX_CHAR_LIMIT is {settings.MAX_CHAR_LIMIT}: Evennia may need seconds to find"
            " link markup in one long line, and the game answers no player meanwhile. The limit"
            " does not apply to web clients.",
            hint=how,
        )
    ]


def size_doubts() -> list[Problem]:
    """Return a warning for each way in which anybody can send data of unlimited size."""
    found = []
    if settings.WEBSERVER_ENABLED and BODIES not in _plugins():
        found.append(
            Problem(
                id="W027",
                message=f"PORTAL_SERVICES_PLUGIN_MODULES does not contain {BODIES}: anybody can"
                " send web requests of any size without logging in, and the game keeps each several"
                " times in memory.",
                hint="PORTAL_SERVICES_PLUGIN_MODULES = [*PORTAL_SERVICES_PLUGIN_MODULES,"
                f' "{BODIES}"] and `evennia reboot`. {_PAGE}',
            )
        )
    # If the class accepts every page, W020 already names our class, which also limits sizes.
    if (
        _WEBSOCKET in _clients()
        and _WEBSOCKET.refuses_pages
        and not getattr(_WEBSOCKET.used, "maxFramePayloadSize", 0)
    ):
        found.append(
            Problem(
                id="W028",
                message="WEBSOCKET_PROTOCOL_CLASS: a web client may send messages of any size.",
                hint=f'Make your class from "{_WEBSOCKET.ours}", or give it'
                f" maxFramePayloadSize = 65536. {_PAGE}",
            )
        )
    return found


def _plugins() -> list[str]:
    own = settings.PORTAL_SERVICES_PLUGIN_MODULES
    return [own] if isinstance(own, str) else list(own)


def wire_doubts() -> list[Problem]:
    """Return a warning if small packets are delayed in the Portal."""
    if NODELAY in _plugins():
        return []
    return [
        Problem(
            id="W025",
            message=f"PORTAL_SERVICES_PLUGIN_MODULES does not contain {NODELAY}: each command and"
            " each answer may wait up to 40 ms in the Portal for an acknowledgement.",
            hint=f'PORTAL_SERVICES_PLUGIN_MODULES = [*PORTAL_SERVICES_PLUGIN_MODULES, "{NODELAY}"]'
            f" and `evennia reboot`. {_PAGE}",
        )
    ]


def database_doubts() -> list[Problem]:
    """Return a warning if the game stops while something is written to its SQLite database."""
    used = settings.DATABASES["default"]
    is_file = used["ENGINE"].endswith("sqlite3") and "memory" not in str(used["NAME"])
    begun_with = str(used.get("OPTIONS", {}).get("init_command", "")).replace(" ", "").lower()
    if not is_file or "journal_mode=wal" in begun_with:
        return []
    return [
        Problem(
            id="W026",
            message="DATABASES: this SQLite database cannot be read while it is written, so the"
            " whole game waits each time that words of NPCs are stored.",
            hint=f'DATABASES["default"]["OPTIONS"] = {{"init_command": "{WAL}"}};'
            " docs/reference/settings.md of evennia_ai explains it.",
        )
    ]


def error_doubts() -> list[Problem]:
    """Return a warning if players can see tracebacks. With DEBUG on, that is intended."""
    if settings.DEBUG or not settings.IN_GAME_ERRORS:
        return []
    return [
        Problem(
            id="W030",
            message="IN_GAME_ERRORS is True, Evennia's default: a player whose command fails sees"
            " the traceback, with paths of this machine and the address of the database.",
            hint="IN_GAME_ERRORS = False shows one sentence instead; the log keeps the traceback."
            f" {_PAGE}",
        )
    ]


def _open_telnet() -> Iterator[Problem]:
    if (settings.TELNET_ENABLED or settings.SSL_ENABLED) and not _TELNET.refuses_pages:
        yield Problem(
            id="W023",
            message="TELNET_PROTOCOL_CLASS: a form on any web page can make a visitor's browser"
            " send lines to the telnet port, from inside your network.",
            hint=f'{_TELNET.setting} = "{_TELNET.ours}" closes a connection that speaks HTTP.'
            f" {_PAGE}",
        )


def _open_clients() -> Iterator[Problem]:
    for client in _clients():
        if not client.refuses_pages:
            yield Problem(
                id="W020",
                message=f"{client.setting}: the web client accepts connections from every web page."
                " Such a page can type in the game as the person who has it open.",
                hint=f'{client.setting} = "{client.ours}" accepts only pages of this game,'
                f" which ALLOWED_HOSTS and CSRF_TRUSTED_ORIGINS name. {_PAGE}",
            )


def _unnamed_hosts() -> Iterator[Problem]:
    """Yield a warning if our classes refuse all pages, because ALLOWED_HOSTS names no host."""
    refusing = [client.setting for client in _clients() if client.is_ours]
    if refusing and "*" in settings.ALLOWED_HOSTS and not settings.CSRF_TRUSTED_ORIGINS:
        yield Problem(
            id="W021",
            message=f'ALLOWED_HOSTS is "*", so {refusing[0]} cannot recognize pages of this game'
            " and refuses the web client on every page.",
            hint='Name the hosts, such as ALLOWED_HOSTS = ["play.example.org"]; behind a proxy with'
            f' https also CSRF_TRUSTED_ORIGINS = ["https://play.example.org"]. {_PAGE}',
        )


def _guessable_passwords() -> Iterator[Problem]:
    rest = getattr(settings, "REST_FRAMEWORK", {})
    if not settings.REST_API_ENABLED or rest.get("DEFAULT_THROTTLE_CLASSES"):
        return
    if _BASIC in rest.get("DEFAULT_AUTHENTICATION_CLASSES", (_BASIC,)):
        yield Problem(
            id="W022",
            message="REST_FRAMEWORK: the REST API accepts a password with each request. Anybody can"
            " guess passwords without a limit, and any web page can use one that a browser stored.",
            hint="Take BasicAuthentication out of DEFAULT_AUTHENTICATION_CLASSES, or set"
            f" DEFAULT_THROTTLE_CLASSES. {_PAGE}",
        )


def _clients() -> list[Client]:
    """Return the web clients that this game offers."""
    if not settings.WEBCLIENT_ENABLED:
        return []
    return [_WEBSOCKET, _AJAX] if settings.WEBSOCKET_CLIENT_ENABLED else [_AJAX]
