"""Decide which web pages belong to the game, and refuse requests of all others.

With a request, a browser sends the origin of the page that made it: scheme, host and port. A page
cannot forge its origin. Checking it therefore keeps a stranger's page from playing or changing the
game in the browser of a player who is logged in. Programs other than browsers can send any origin.
"""

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

REFUSED: Final = "This page does not belong to this game: its origin is not allowed."
_HTTP_PORT: Final = "80"
_ANY: Final = "*"


class OwnOriginsMiddleware:
    """Middleware that refuses requests of foreign pages to the site, the admin and the REST API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not may_ask(request.headers.get("Origin")):
            return HttpResponse(REFUSED, status=403, content_type="text/plain")
        return self._get_response(request)


def may_ask(origin: str | None) -> bool:
    """True if the game answers a request with this Origin header. None is a request without one."""
    return origin is None or is_own_origin(
        origin,
        hosts=settings.ALLOWED_HOSTS,
        ports=[outer for outer, _ in settings.WEBSERVER_PORTS],
        trusted=settings.CSRF_TRUSTED_ORIGINS,
    )


def is_own_origin(
    origin: str, *, hosts: Iterable[str], ports: Iterable[int], trusted: Iterable[str]
) -> bool:
    """True if a page of this origin belongs to the game.

    That is a page loaded by http from one of the game's hosts and web ports, or a page of one of
    the `trusted` origins. There `https://*.example.org` means every host below that domain. The
    host `*` is ignored, because it would make every page in the world the game's own.
    """
    if any(_is_within(origin, one) for one in trusted):
        return True
    scheme, host, port = _parts(origin)
    named = [one for one in hosts if one != _ANY]
    numbers = [str(one) for one in ports]
    return scheme == "http" and bool(host) and port in numbers and validate_host(host, named)


def _is_within(origin: str, trusted: str) -> bool:
    wanted = urlsplit(trusted)
    scheme, host, port = _parts(origin)
    wanted_host, wanted_port = split_domain_port(wanted.netloc.replace("*", "", 1))
    return (
        bool(host)
        and scheme == wanted.scheme
        and port == (wanted_port or _usual_port(scheme))
        and is_same_domain(host, wanted_host)
    )


def _parts(origin: str) -> tuple[str, str, str]:
    """Return scheme, host and port of an origin. The host is "" if it has none, as in `null`."""
    scheme, found, rest = origin.lower().partition("://")
    host, port = split_domain_port(rest) if found else ("", "")
    return scheme, host, port or _usual_port(scheme)


def _usual_port(scheme: str) -> str:
    return "443" if scheme == "https" else _HTTP_PORT
