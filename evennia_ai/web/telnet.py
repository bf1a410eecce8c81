"""Evennia's telnet, in which no browser can be made to type, and no client can fill the log.

A page of a stranger can have its visitor's browser send a form to any port of the visitor's
machine: the lines of an HTTP request, then lines that the page chose. Evennia closes such a
connection where it reads the request's first line in one piece; of an address of 65,536 letters it
plays what comes after. Here nothing of it is played. What Evennia cannot read of the protocol
itself ended in a traceback in the Portal's log; here the connection is closed with one line.

Named in a game's settings, `TELNET_PROTOCOL_CLASS`; telnet with TLS is made from it too.
"""

import re
from typing import Any, Final

from evennia.server.portal.telnet import TelnetProtocol
from evennia.utils import logger

from evennia_ai.web.bodies import LARGEST_FRAME

REFUSED: Final = b"This port is for telnet; the web pages of this game are at another one.\r\n"

LARGEST_OPTION: Final = 8 * 1024
"""Bytes of a subnegotiation; a frame of GMCP or MSDP is one."""

_LINE_END: Final = re.compile(rb"[\r\n]")
_BEGINS: Final = re.compile(rb"[A-Z]{1,20} ", re.IGNORECASE)
_ENDS: Final = re.compile(rb" HTTP/\d(?:\.\d)?\s*\Z", re.IGNORECASE)


class TelnetWithoutHttp(TelnetProtocol):
    """Telnet that closes a connection which speaks HTTP, or what is no telnet at all."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._is_refused = False
        self._has_first_line = False

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        if self._is_refused:  # Twisted goes on reading until what was written is sent
            return
        try:
            super().dataReceived(data)
        except Exception as error:  # an empty subnegotiation, GMCP that is nested without end
            self._refuse(f"it sent what cannot be read: {type(error).__name__}: {error}"[:200])
        # Twisted and Evennia keep all that is not ended yet.
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
        """Close the connection, with one line in the log: who sends more fills it no faster."""
        if self._is_refused:
            return
        self._is_refused = True
        self.transport.write(REFUSED)
        self.transport.loseConnection()
        logger.log_warn(f"Telnet closed a connection of {self.address}: {why}.")


def is_http(line: bytes) -> bool:
    """True if a line is the first one of an HTTP request: `POST /page HTTP/1.1`."""
    return bool(_BEGINS.match(line) and _ENDS.search(line[-20:]))
