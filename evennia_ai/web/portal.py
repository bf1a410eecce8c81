"""Evennia's web client, limited to pages of the game's own origins and to frames of 64 KiB.

Set these classes in a game's settings as `WEBSOCKET_PROTOCOL_CLASS` and `AJAX_CLIENT_CLASS`. They
run in the Portal.
"""

import json
from os import SEEK_END
from typing import Any

from autobahn.websocket.types import ConnectionDeny  # type: ignore[import-untyped]
from evennia.server.portal.webclient import WebSocketClient
from evennia.server.portal.webclient_ajax import AjaxWebClient
from evennia.utils import logger

from evennia_ai.web.bodies import LARGEST_FRAME
from evennia_ai.web.origins import REFUSED, may_ask

_LONGEST_LOGGED = 100


class OwnOriginsWebSocket(WebSocketClient):
    """A websocket that refuses pages of other origins and messages of more than 64 KiB.

    It closes a connection that breaks a rule, and writes one line to the log.
    """

    maxFramePayloadSize = LARGEST_FRAME  # noqa: N815 - autobahn's name

    def onConnect(self, request: Any) -> Any:  # noqa: N802 - autobahn's name
        # Do not use `request.origin`: it is "" without a header. For a client that claims an old
        # version of the protocol, it is read from another header.
        origin = request.headers.get("origin")
        if not may_ask(origin):
            _log(origin)
            raise ConnectionDeny(ConnectionDeny.FORBIDDEN, REFUSED)
        return super().onConnect(request)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        # Until the empty line that ends a handshake arrives, autobahn keeps everything that is
        # sent.
        if self.state == self.STATE_CONNECTING and len(self.data) + len(data) > LARGEST_FRAME:
            self._refuse("it sent a request without an end")
            return
        super().dataReceived(data)

    def onMessageFrameBegin(self, length: int) -> None:  # noqa: N802 - autobahn's name
        super().onMessageFrameBegin(length)
        # `maxMessagePayloadSize` of autobahn would also limit what the game sends.
        if self.message_data_total_length > LARGEST_FRAME and not self.failedByMe:
            self._refuse(f"it sent a message of more than {LARGEST_FRAME} bytes in pieces")

    def onMessage(self, payload: bytes, isBinary: bool) -> None:  # noqa: N802, N803 - autobahn's
        try:
            frame = json.loads(payload)
        except (ValueError, RecursionError):
            frame = None
        match frame:
            case [str(name), arguments, dict(options)]:
                self.data_in(**{name: [arguments, options]})
            case _:
                self._refuse("it sent something other than [name, [arguments], {options}] in JSON")

    def _refuse(self, why: str) -> None:
        logger.log_warn(f"The web client closed a connection of {self.peer}: {why}.")
        self.dropConnection(abort=True)


class OwnOriginsAjax(AjaxWebClient):
    """The Ajax connection, which the web client uses if it cannot open a websocket."""

    # Twisted joins these methods as bytes. Evennia has them as text, so each request with another
    # method failed and left a traceback in the Portal's log.
    allowedMethods = (b"POST",)  # noqa: N815 - Twisted's name

    def render_POST(self, request: Any) -> Any:  # noqa: N802 - Twisted's name
        origin = request.getHeader("origin")
        if not may_ask(origin):
            _log(origin)
            request.setResponseCode(403)
            return REFUSED.encode()
        if request.content.seek(0, SEEK_END) > LARGEST_FRAME:
            request.setResponseCode(413)
            return f"The web client takes at most {LARGEST_FRAME} bytes at once.".encode()
        try:
            return super().render_POST(request)
        except (LookupError, TypeError, ValueError, RecursionError):
            request.setResponseCode(400)
            return b"This is not a request of Evennia's web client."


def _log(origin: str) -> None:
    """Log the refused origin for the owner, whose settings may lack an address of the game."""
    logger.log_warn(
        f"The web client refused a page of {origin[:_LONGEST_LOGGED]!r}. If it belongs to this"
        " game, add its address to ALLOWED_HOSTS, WEBSERVER_PORTS or CSRF_TRUSTED_ORIGINS."
    )
