"""Which web pages are the game's own, and a middleware that serves no others.

A browser sends with a request the origin of the page that made it: scheme, host and port. A page
cannot forge its own, so a game that looks at it cannot be played, nor changed, from a stranger's
page in the browser of somebody who is logged in. What is no browser sends what it likes.
"""

from collections.abc import Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import split_domain_port, validate_host
from django.utils.http import is_same_domain

REFUSED: Final = "This page is not of this game (its origin is not allowed)."
_HTTP_PORT: Final = "80"
_ANY: Final = "*"


class OwnOriginsMiddleware:
    """Refuses what a page of another origin asks of the site, the admin and the REST API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not may_ask(request.headers.get("Origin")):
            return HttpResponse(REFUSED, status=403, content_type="text/plain")
        return self._get_response(request)


def may_ask(origin: str | None) -> bool:
    """True if a request with this Origin header, or with none, is answered by this game."""
    return origin is None or is_own_origin(
        origin,
        hosts=settings.ALLOWED_HOSTS,
        ports=[outer for outer, _ in settings.WEBSERVER_PORTS],
        trusted=settings.CSRF_TRUSTED_ORIGINS,
    )


def is_own_origin(
    origin: str, *, hosts: Iterable[str], ports: Iterable[int], trusted: Iterable[str]
) -> bool:
    """True if a page of this origin is the game's.

    It is when it came over http from one of the game's hosts and one of its web ports, or when it
    is one of the `trusted` origins, where `https://*.example.org` is every host below that. The
    host `*` names nobody: every page in the world would be the game's own.
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
    """Scheme, host and port of an origin; the host is empty where it is none, such as `null`."""
    scheme, found, rest = origin.lower().partition("://")
    host, port = split_domain_port(rest) if found else ("", "")
    return scheme, host, port or _usual_port(scheme)


def _usual_port(scheme: str) -> str:
    return "443" if scheme == "https" else _HTTP_PORT
