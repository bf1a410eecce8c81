"""Which web pages belong to the game, how others are refused, and what the system checks report."""

from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.core import checks
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from evennia.server.portal.webclient import WebSocketClient

from evennia_ai.web.origins import OwnOriginsMiddleware, is_own_origin
from tests.docs.fences import blocks

PAGE = "security.md"

EVENNIAS = {
    "WEBSOCKET_PROTOCOL_CLASS": "evennia.server.portal.webclient.WebSocketClient",
    "AJAX_CLIENT_CLASS": "evennia.server.portal.webclient_ajax.AjaxWebClient",
}


class LookingWebSocket(WebSocketClient):
    """A game's own websocket class, which examines origins itself and limits nothing."""

    def onConnect(self, request: Any) -> Any:
        return super().onConnect(request)


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:4001",
        "http://LOCALHOST:4001",
        "http://127.0.0.1:4001",
        "http://harbour.example:4001",
        "http://harbour.example",
        "http://inn.ebbwick.example:80",
        "https://play.example.org",
        "https://play.example.org:443",
        "https://eu.cdn.example.org",
    ],
)
def test_page_belongs_to_the_game_on_its_hosts_and_ports_or_a_trusted_origin(origin: str) -> None:
    assert own(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "file://",
        "http://",
        "//localhost:4001",
        "localhost:4001",
        "https://localhost:4001",
        "http://localhost:4002",
        "http://localhost:8000",
        "http://localhost:4001.evil.example",
        "http://localhost.evil.example:4001",
        "http://evil.example/http://localhost:4001",
        "http://localhost:4001/",
        "http://localhost:4001@evil.example",
        "http://evil.example:4001",
        "http://xharbour.example:4001",
        "http://play.example.org",
        "https://play.example.org:8443",
        "https://play.example.org.evil.example",
        "https://xcdn.example.org",
        "http://localhost:4001 http://evil.example",
        "chrome-extension://abcdefgh",
    ],
)
def test_page_of_another_origin_does_not_belong_to_the_game(origin: str) -> None:
    assert not own(origin)


def own(origin: str) -> bool:
    return is_own_origin(
        origin,
        hosts=["localhost", "127.0.0.1", "harbour.example", ".ebbwick.example"],
        ports=[80, 4001],
        trusted=["https://play.example.org", "https://*.cdn.example.org"],
    )


def test_wildcard_host_makes_no_page_the_games_own() -> None:
    assert not is_own_origin("http://evil.example", hosts=["*"], ports=[80], trusted=[])


def asked(origin: str | None) -> HttpResponse:
    """Return the answer of the site to a page of this origin."""
    request = HttpRequest()
    request.META = {} if origin is None else {"HTTP_ORIGIN": origin}
    return OwnOriginsMiddleware(lambda _: HttpResponse("served"))(request)


def test_site_answers_own_pages_and_requests_without_an_origin() -> None:
    own_page = f"http://localhost:{settings.WEBSERVER_PORTS[0][0]}"
    assert [asked(one).status_code for one in (None, own_page)] == [200, 200]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", ""])
def test_site_refuses_requests_of_foreign_pages(origin: str) -> None:
    refused = asked(origin)
    assert (refused.status_code, b"does not belong to this game" in refused.content) == (403, True)


def ids(**changed: Any) -> list[str | None]:
    """Return the ids of the checks that report something for these settings."""
    with override_settings(**changed):
        found = checks.run_checks()
    return [one.id for one in found if (one.id or "").startswith("evennia_ai.")]


def test_checks_report_nothing_for_the_demo() -> None:
    assert ids() == []


def test_check_warns_of_evennias_web_client_which_accepts_every_page() -> None:
    assert ids(**EVENNIAS) == ["evennia_ai.W020"] * 2


def test_check_hint_names_the_class_that_refuses_foreign_pages(
    settings_of_check: Callable[[], list[str]],
) -> None:
    assert 'WEBSOCKET_PROTOCOL_CLASS = "evennia_ai.web.portal.OwnOriginsWebSocket"' in str(
        settings_of_check()
    )


@pytest.fixture
def settings_of_check() -> Callable[[], list[str]]:
    """Return the hints that a game with Evennia's own classes gets."""

    def hints() -> list[str]:
        with override_settings(**EVENNIAS):
            return [one.hint or "" for one in checks.run_checks() if one.id == "evennia_ai.W020"]

    return hints


def test_check_accepts_a_games_own_class_that_examines_origins() -> None:
    looking = f"{__name__}.LookingWebSocket"
    assert "evennia_ai.W020" not in ids(WEBSOCKET_PROTOCOL_CLASS=looking)


def test_check_reports_nothing_for_a_game_without_a_web_client() -> None:
    assert ids(**EVENNIAS, WEBCLIENT_ENABLED=False) == []
    assert ids(**EVENNIAS, WEBSOCKET_CLIENT_ENABLED=False) == ["evennia_ai.W020"]


def test_check_warns_when_no_host_is_named() -> None:
    assert ids(ALLOWED_HOSTS=["*"]) == ["evennia_ai.W021"]
    assert ids(ALLOWED_HOSTS=["*"], CSRF_TRUSTED_ORIGINS=["https://play.example.org"]) == []


def test_check_warns_of_a_rest_api_without_a_limit_for_passwords() -> None:
    basic = {
        "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.BasicAuthentication"]
    }
    throttled = {
        **basic,
        "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    }
    assert ids(REST_FRAMEWORK=basic) == ["evennia_ai.W022"]
    assert ids(REST_FRAMEWORK=basic, REST_API_ENABLED=False) == []
    assert ids(REST_FRAMEWORK=throttled) == []


def test_check_warns_of_evennias_telnet_which_executes_web_forms() -> None:
    evennias = "evennia.server.portal.telnet.TelnetProtocol"
    assert ids(TELNET_PROTOCOL_CLASS=evennias) == ["evennia_ai.W023"]
    assert ids(TELNET_PROTOCOL_CLASS=evennias, TELNET_ENABLED=False) == []
    assert ids(TELNET_PROTOCOL_CLASS=evennias, TELNET_ENABLED=False, SSL_ENABLED=True) != []


def test_check_warns_when_typed_lines_may_block_the_game() -> None:
    evennias = {
        "PORTAL_SESSION_HANDLER_CLASS": "evennia.server.portal.portalsessionhandler"
        ".PortalSessionHandler"
    }
    assert ids(**evennias, MAX_CHAR_LIMIT=1000) == []
    assert ids(**evennias, MAX_CHAR_LIMIT=1001) == ["evennia_ai.W024"]
    assert ids(**evennias, MAX_CHAR_LIMIT=0) == ["evennia_ai.W024"]
    assert ids(MXP_OUTGOING_ONLY=False) == ["evennia_ai.W024"]
    assert ids(MAX_CHAR_LIMIT=6000) == []


def test_settings_shown_in_the_documentation_pass_all_checks() -> None:
    (example,) = [
        one for one in blocks("python") if (one.page, one.heading) == (PAGE, "Web pages of others")
    ]
    shown: dict[str, Any] = {"MIDDLEWARE": [], "REST_FRAMEWORK": {}}
    exec(example.text, shown)
    assert ids(**{name: value for name, value in shown.items() if name.isupper()}) == []
