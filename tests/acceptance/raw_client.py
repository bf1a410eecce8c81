"""A telnet client that hides nothing: it takes colours and links, and keeps all it is sent."""

import socket
import time
from types import TracebackType
from typing import Final, Self

from server.telnet import DO, DONT, IAC, WILL, Negotiation

MXP: Final = 91
_OFFER: Final = bytes([IAC, WILL, MXP])
_AGREED: Final = bytes([IAC, DO, MXP])


class RawClient:
    """A player's client; with `links` it takes MXP.

    `raw` is what came since the last line was sent.
    """

    def __init__(self, host: str, port: int, *, links: bool = True) -> None:
        self._links = links
        self._socket = socket.create_connection((host, port), timeout=10)
        self._negotiation = Negotiation()
        self.raw = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, line: str) -> None:
        """Type a line; what came before is forgotten."""
        self.raw = b""
        typed = line.encode("utf-8", "replace").replace(b"\xff", b"\xff\xff")
        self._socket.sendall(typed + b"\r\n")

    def wait_for(self, words: str, *, seconds: float = 20.0) -> bytes:
        """All that came, once these words are in it and nothing more comes."""
        ends = time.monotonic() + seconds
        while words.encode() not in self.raw:
            assert time.monotonic() < ends, f"waited for {words!r}: {self.raw[-2000:]!r}"
            self._receive(ends)
        while self._receive(time.monotonic() + 0.5):
            pass
        return self.raw

    def _receive(self, until: float) -> bool:
        """Whether anything came before `until`."""
        self._socket.settimeout(max(0.05, until - time.monotonic()))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return False
        self.raw += data
        _, answer = self._negotiation.read(data)
        if self._links and _OFFER in data:
            answer = answer.replace(bytes([IAC, DONT, MXP]), _AGREED)
        if answer:
            self._socket.sendall(answer)
        return bool(data)
