"""How much one client may send to the Portal at once: websocket frames, telnet, bodies of requests.

Evennia and Twisted take a body of any size and keep it several times over: 300 MB that nobody
logged in for took 860 MB. They also read every form in the Portal, and again in the Server, where
everybody waits for it, although Django reads it a third time. Here a body that is too large is
refused before it is kept, and a form is read where it is used.

The Server is also told the address that a request comes from, so that a ban of an address holds
for web pages.

Named in a game's settings, `PORTAL_SERVICES_PLUGIN_MODULES`. The Server needs no setting.
"""

from importlib import import_module
from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from twisted.application.service import MultiService
from twisted.web.server import Request, Site

from evennia_ai.services.settings.conf import conf

LARGEST_FRAME: Final = 64 * 1024
"""Bytes of a websocket message, of an unfinished telnet line, of a request of the Ajax client."""
LARGEST_BODY: Final = 1_000_000
"""Bytes of a request's body without a login."""
FORM_AROUND_FILE: Final = 100_000
"""Bytes of a form around the file of a card."""
FAREWELL_SECONDS: Final = 5.0
"""How long a refused body is still read and dropped, so that a browser reads the answer."""

_REFUSED: Final = (
    "The body of this request is too large, so nothing of it was kept. The limit is {anybody:,}"
    " bytes, and {known:,} bytes if you are logged in (EVENNIA_AI_CARD_LIMITS, file_bytes).\n"
)


def start_plugin_services(service: MultiService) -> None:
    """Bound the bodies at each web port of the Portal or the Server.

    Evennia calls it when its own services are made and none of them has begun.
    """
    for part in service.services:
        for factory in getattr(part, "args", ()):
            if isinstance(factory, Site):
                factory.requestFactory = BoundedRequest


class BoundedRequest(Request):
    """A request whose body is refused as soon as it is known to be too large."""

    _received = 0
    _most = LARGEST_BODY
    _is_refused = False
    _command = b""

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        super().gotLength(length)
        self._refuse_beyond_most(length or 0)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._received += len(data)
        # The length of a body in chunks is not announced.
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
            # Evennia's proxy passes on the headers, and a body that is no longer in chunks.
            self.requestHeaders.removeHeader("transfer-encoding")
            self.requestHeaders.setRawHeaders("content-length", [str(self._received)])
        # Evennia's proxy does not say where a request comes from, and a client may say anything.
        # Evennia's channel has taken the word of web servers in front already (UPSTREAM_IPS).
        self.requestHeaders.setRawHeaders("x-forwarded-for", [self.channel.getPeer().host])
        self._command = command
        # Twisted reads the form of a "POST" here, in the thread of the whole game.
        is_small = self._received <= LARGEST_FRAME
        super().requestReceived(command if is_small else b"", path, version)

    def process(self) -> None:
        self.method = self._command
        super().process()

    def _refuse_beyond_most(self, length: int) -> None:
        """Answer that a body of so many bytes is too large, once."""
        if self._is_refused or length <= self._most:
            return
        most = conf().card_limits.file_bytes + FORM_AROUND_FILE
        if self._most < most and self._is_logged_in():
            self._most = most
            self._refuse_beyond_most(length)
            return
        self._is_refused = True
        self.requestHeaders.removeHeader("expect")  # or Twisted asks for the body
        said = _REFUSED.format(anybody=LARGEST_BODY, known=most).encode()
        self.channel.transport.write(
            b"HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: text/plain\r\n"
            b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(said), said)
        )
        self.channel.site.reactor.callLater(FAREWELL_SECONDS, self.channel.loseConnection)

    def _is_logged_in(self) -> bool:
        """True if the request comes from the browser of somebody who is logged in to the site."""
        key = self.getCookie(settings.SESSION_COOKIE_NAME.encode())
        if key is None:
            return False
        store = import_module(settings.SESSION_ENGINE).SessionStore
        return SESSION_KEY in store(key.decode(errors="replace"))
