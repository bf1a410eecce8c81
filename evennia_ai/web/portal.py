"""Evennia's web client, for pages of the game's own origins alone.

Named in a game's settings, `WEBSOCKET_PROTOCOL_CLASS` and `AJAX_CLIENT_CLASS`. They run in the
Portal.
"""

from typing import Any

from autobahn.websocket.types import ConnectionDeny  # type: ignore[import-untyped]
from evennia.server.portal.webclient import WebSocketClient
from evennia.server.portal.webclient_ajax import AjaxWebClient
from evennia.utils import logger

from evennia_ai.web.origins import REFUSED, may_ask

_LONGEST_LOGGED = 100


class OwnOriginsWebSocket(WebSocketClient):
    """The websocket: a page of another origin gets no connection, and so sees and sends nothing."""

    def onConnect(self, request: Any) -> Any:  # noqa: N802 - autobahn's name
        # Not `request.origin`, which is empty for no header and read from another one where the
        # client says that it speaks an old version of the protocol.
        origin = request.headers.get("origin")
        if not may_ask(origin):
            _log(origin)
            raise ConnectionDeny(ConnectionDeny.FORBIDDEN, REFUSED)
        return super().onConnect(request)


class OwnOriginsAjax(AjaxWebClient):
    """What the web client falls back to where there are no websockets."""

    # Twisted joins these as bytes. Evennia's text made it fail on any other request, with a
    # traceback in the Portal's log for each.
    allowedMethods = (b"POST",)  # noqa: N815 - Twisted's name

    def render_POST(self, request: Any) -> Any:  # noqa: N802 - Twisted's name
        origin = request.getHeader("origin")
        if not may_ask(origin):
            _log(origin)
            request.setResponseCode(403)
            return REFUSED.encode()
        return super().render_POST(request)


def _log(origin: str) -> None:
    """Tell the owner of a game, who may have forgotten an address of it."""
    logger.log_warn(
        f"The web client refused a page of {origin[:_LONGEST_LOGGED]!r}. If that is this game:"
        " ALLOWED_HOSTS, WEBSERVER_PORTS and CSRF_TRUSTED_ORIGINS say which pages are its own."
    )
