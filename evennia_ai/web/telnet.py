"""Evennia's telnet, protected against browsers and against clients that would fill the log.

A stranger's web page can make its visitor's browser send a form to any port of the visitor's
machine. The port then receives the lines of an HTTP request, followed by lines that the page chose.
Evennia closes such a connection if the first line of the request arrives in one piece. If the
address has 65,536 letters, Evennia misses it and executes the lines that follow. This class
executes none of them.

With Evennia's class, data that breaks the telnet protocol also leaves a traceback in the Portal's
log. This class closes the connection and writes one line.

Set it in a game's settings as `TELNET_PROTOCOL_CLASS`. Telnet with TLS uses the same class.
"""

import re
from typing import Any, Final

from evennia.server.portal.telnet import TelnetProtocol
from evennia.utils import logger

from evennia_ai.web.bodies import LARGEST_FRAME

REFUSED: Final = b"This port is for telnet; the web pages of this game are at another one.\r\n"

LARGEST_OPTION: Final = 8 * 1024
"""The most bytes of a telnet subnegotiation, such as a frame of GMCP or MSDP."""

_LINE_END: Final = re.compile(rb"[\r\n]")
_BEGINS: Final = re.compile(rb"[A-Z]{1,20} ", re.IGNORECASE)
_ENDS: Final = re.compile(rb" HTTP/\d(?:\.\d)?\s*\Z", re.IGNORECASE)


class TelnetWithoutHttp(TelnetProtocol):
    """Telnet that closes a connection if the client speaks HTTP or breaks the telnet protocol."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_refused = False
        self._has_first_line = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._is_refused:  # Twisted goes on reading until the answer is sent
            return
        try:
            super().dataReceived(data)
        except Exception as error:  # for example an empty subnegotiation, or GMCP nested too deeply
            self._refuse(f"it sent what cannot be read: {type(error).__name__}: {error}"[:200])
        # Twisted and Evennia keep all data of a line or subnegotiation that has not ended yet.
        unfinished = self.commands if self.state.startswith("subnegotiation") else self.line_buffer
        if len(unfinished) > LARGEST_FRAME:
            self._refuse(f"it sent more than {LARGEST_FRAME} bytes without an end")

    def negotiate(self, data: list[bytes]) -> None:
        if len(data) > LARGEST_OPTION:
            self._refuse(f"it sent a frame of more than {LARGEST_OPTION} bytes")
        elif not self._is_refused:
            super().negotiate(data)

    def applicationDataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._is_refused:
            return
        if not self._has_first_line:
            line, *rest = _LINE_END.split((self.line_buffer + data).lstrip(), maxsplit=1)
            self._has_first_line = bool(rest)
            if rest and is_http(line):
                self._refuse("it spoke HTTP")
                return
        super().applicationDataReceived(data)

    def _refuse(self, why: str) -> None:
        """Close the connection and log one line, once, so that a client cannot fill the log."""
        if self._is_refused:
            return
        self._is_refused = True
        self.transport.write(REFUSED)
        self.transport.loseConnection()
        logger.log_warn(f"Telnet closed a connection of {self.address}: {why}.")


def is_http(line: bytes) -> bool:
    """True if a line is the first line of an HTTP request, such as `POST /page HTTP/1.1`."""
    return bool(_BEGINS.match(line) and _ENDS.search(line[-20:]))
