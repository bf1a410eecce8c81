"""Limits on the size of request bodies at the web ports of the Portal and the Server.

Evennia and Twisted accept a body of any size and keep several copies: 300 MB sent without a login
took 860 MB of memory. They also parse every form, in the Portal and again in the Server, where
everybody has to wait, although Django parses it once more. This module refuses a body that is too
large before it is kept, and leaves large forms to Django.

It also passes on the address of the client, so a ban of an address also applies to web pages.

Name this module in the game's setting `PORTAL_SERVICES_PLUGIN_MODULES`. The Server needs no
setting.
"""

from importlib import import_module
from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from twisted.application.service import MultiService
from twisted.web.server import Request, Site

from evennia_ai.services.settings.conf import conf

LARGEST_FRAME: Final = 64 * 1024
"""The most bytes of a websocket message, an unfinished telnet line or an Ajax client's request."""
LARGEST_BODY: Final = 1_000_000
"""The most bytes of a request's body without a login."""
FORM_AROUND_FILE: Final = 100_000
"""The bytes that a form may have in addition to the card file in it."""
FAREWELL_SECONDS: Final = 5.0
"""How long the rest of a refused body is read and dropped, so that a browser can read the answer.
"""

_REFUSED: Final = (
    "The body of this request is too large, so nothing of it was kept. The limit is {anybody:,}"
    " bytes, and {known:,} bytes if you are logged in (EVENNIA_AI_CARD_LIMITS, file_bytes).\n"
)


def start_plugin_services(service: MultiService) -> None:
    """Limit the bodies of requests at each web port of the Portal or the Server.

    Evennia calls this function after it created its own services and before it starts them.
    """
    for part in service.services:
        for factory in getattr(part, "args", ()):
            if isinstance(factory, Site):
                factory.requestFactory = BoundedRequest


class BoundedRequest(Request):
    """A request that is refused as soon as its body is known to be too large."""

    _received = 0
    _most = LARGEST_BODY
    _is_refused = False
    _command = b""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        super().gotLength(length)
        self._refuse_beyond_most(length or 0)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._received += len(data)
        # A chunked body does not announce its length, so count what has arrived.
        self._refuse_beyond_most(self._received)
        if not self._is_refused:
            super().handleContentChunk(data)

    def requestReceived(  # noqa: N802 - Twisted's name
        self, command: bytes, path: bytes, version: bytes
    ) -> None:
        if self._is_refused:
            self.channel.loseConnection()
            return
        if self.requestHeaders.hasHeader("transfer-encoding"):
            # Evennia's proxy copies these headers, but sends the body without chunks.
            self.requestHeaders.removeHeader("transfer-encoding")
            self.requestHeaders.setRawHeaders("content-length", [str(self._received)])
        # Evennia's proxy does not add the client's address, and a header from the client may be
        # forged. If a web server in front of the game is trusted (UPSTREAM_IPS), Evennia's channel
        # has already replaced the address of the peer.
        self.requestHeaders.setRawHeaders("x-forwarded-for", [self.channel.getPeer().host])
        self._command = command
        # Twisted would parse the form of a large "POST" here, in the thread that runs the whole
        # game. It does not parse a request without a command; `process` sets the command again.
        is_small = self._received <= LARGEST_FRAME
        super().requestReceived(command if is_small else b"", path, version)

    def process(self) -> None:
        self.method = self._command
        super().process()

    def _refuse_beyond_most(self, length: int) -> None:
        """Answer once that a body of `length` bytes is too large, if it is."""
        if self._is_refused or length <= self._most:
            return
        most = conf().card_limits.file_bytes + FORM_AROUND_FILE
        if self._most < most and self._is_logged_in():
            self._most = most
            self._refuse_beyond_most(length)
            return
        self._is_refused = True
        # else Twisted would ask the client to send the body
        self.requestHeaders.removeHeader("expect")
        said = _REFUSED.format(anybody=LARGEST_BODY, known=most).encode()
        self.channel.transport.write(
            b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/plain\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
        )
        self.channel.site.reactor.callLater(FAREWELL_SECONDS, self.channel.loseConnection)

    def _is_logged_in(self) -> bool:
        """True if the request has the session cookie of an account that is logged in."""
        key = self.getCookie(settings.SESSION_COOKIE_NAME.encode())
        if key is None:
            return False
        store = import_module(settings.SESSION_ENGINE).SessionStore
        return SESSION_KEY in store(key.decode(errors="replace"))
