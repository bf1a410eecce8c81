"""What a game's settings let pages of other origins do; said by its system checks."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.utils.module_loading import import_string

from evennia_ai.setting_problems import Problem

_PAGE: Final = "docs/security.md of evennia_ai tells more."
_EVENNIAS: Final = ("evennia", "autobahn", "twisted")
"""Packages whose own methods let every page in."""

_OURS: Final = "evennia_ai.web.portal"
_BASIC: Final = "rest_framework.authentication.BasicAuthentication"


class Client(NamedTuple):
    """A setting that names a web client's class, what of it may refuse a page, our class for it."""

    setting: str
    method: str
    ours: str

    @property
    def used(self) -> Any:
        """The class that this game uses."""
        return import_string(getattr(settings, self.setting))

    @property
    def refuses_pages(self) -> bool:
        """Whether the method is not Evennia's; one of the game's own is trusted to look."""
        owner = next(one for one in self.used.__mro__ if self.method in vars(one))
        return owner.__module__.split(".")[0] not in _EVENNIAS

    @property
    def is_ours(self) -> bool:
        return any(one.__module__ == _OURS for one in self.used.__mro__)


_WEBSOCKET: Final = Client("WEBSOCKET_PROTOCOL_CLASS", "onConnect", "OwnOriginsWebSocket")
_AJAX: Final = Client("AJAX_CLIENT_CLASS", "render_POST", "OwnOriginsAjax")


def origin_doubts() -> list[Problem]:
    """What this game's settings allow to pages that are not its own."""
    return [*_open_clients(), *_unnamed_hosts(), *_guessable_passwords()]


def _open_clients() -> Iterator[Problem]:
    for client in _clients():
        if not client.refuses_pages:
            yield Problem(
                id="W020",
                message=f"{client.setting}: the web client lets in every page of every site, which"
                " can then type in the game as whoever has that page open.",
                hint=f'{client.setting} = "{_OURS}.{client.ours}" refuses pages that are not'
                f" this game's own: those of ALLOWED_HOSTS and CSRF_TRUSTED_ORIGINS. {_PAGE}",
            )


def _unnamed_hosts() -> Iterator[Problem]:
    """Our classes know the game's pages by its hosts, and `*` names none."""
    refusing = [client.setting for client in _clients() if client.is_ours]
    if refusing and "*" in settings.ALLOWED_HOSTS and not settings.CSRF_TRUSTED_ORIGINS:
        yield Problem(
            id="W021",
            message=f'ALLOWED_HOSTS is "*", so {refusing[0]} knows no page as this game\'s own'
            " and refuses the web client everywhere.",
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
            message="REST_FRAMEWORK: the REST API takes a password with each request, as often as"
            " somebody guesses, and from any page once a browser has kept it.",
            hint="Take BasicAuthentication out of DEFAULT_AUTHENTICATION_CLASSES, or set"
            f" DEFAULT_THROTTLE_CLASSES. {_PAGE}",
        )


def _clients() -> list[Client]:
    """The web clients that this game offers."""
    if not settings.WEBCLIENT_ENABLED:
        return []
    return [_WEBSOCKET, _AJAX] if settings.WEBSOCKET_CLIENT_ENABLED else [_AJAX]
