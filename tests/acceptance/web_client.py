"""A small web client: it talks to the game over a websocket, as Evennia's page does.

Text frames contain JSON: `[name, [arguments], {options}]`. The game sends text as HTML. Only the
standard library is used, so the game's websocket code is not tested against itself.
"""

import base64
import html
import json
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha1
from typing import Any, Final

from server.client import Client
from server.evennia_process import Evennia
from server.ports import HOST

_ACCEPTED: Final = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3
_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_BREAK: Final = re.compile(r"<br\s*/?>")
_TAG: Final = re.compile(r"<[^>]*>")


class RefusedError(Exception):
    """The game refused to open a websocket. The text is the game's response."""


class WebClient(Client):
    """A player's web client. `frames` has everything received since the last typed line.

    `origin` is the address of the page, which a browser sends.

    Raises RefusedError if the game refuses this page.
    """

    def __init__(self, host: str, port: int, *, origin: str | None = None) -> None:
        super().__init__(host, port)
        self._rest = b""
        self.frames: list[Any] = []
        self._shake_hands(f"{host}:{port}", origin)

    def close(self) -> None:
        """Send a closing frame, and close the connection."""
        with suppress(OSError):  # the game may have closed the connection
            self._send(_CLOSE, struct.pack(">H", 1000))
        super().close()

    def send(self, line: str) -> None:
        self.tell("text", line)

    def tell(self, what: str, *arguments: Any, **options: Any) -> None:
        """Call one of Evennia's input functions, such as `client_options`."""
        self.send_frame(json.dumps([what, arguments, options]).encode())

    def send_frame(self, payload: bytes, *, opcode: int = _TEXT) -> None:
        """Forget the received frames, and send one frame, also one that no browser would send."""
        self.forget()
        self._send(opcode, payload)

    def forget(self) -> None:
        self.frames = []

    @property
    def text(self) -> str:
        shown = [frame[1][0] for frame in self.frames if frame[0] == "text" and frame[1]]
        return "\n".join(html.unescape(_TAG.sub("", _BREAK.sub("\n", one))) for one in shown)

    def _shake_hands(self, host: str, origin: str | None) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        asked = (
            f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        )
        if origin is not None:
            asked += f"Origin: {origin}\r\n"
        self._socket.sendall(f"{asked}\r\n".encode())
        while b"\r\n\r\n" not in self._rest:
            more = self._read(time.monotonic() + 10)
            assert more, f"no handshake: {self._rest!r}"
            self._rest += more
        head, self._rest = self._rest.split(b"\r\n\r\n", 1)
        accepted = base64.b64encode(sha1(f"{key}{_ACCEPTED}".encode()).digest())
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            self._socket.close()
            raise RefusedError(head.decode(errors="replace"))
        assert accepted in head, head

    def _send(self, opcode: int, payload: bytes) -> None:
        """Send one frame, masked as the protocol demands of clients."""
        length = len(payload)
        if length < 126:
            size = bytes([0x80 | length])
        elif length < 1 << 16:
            size = bytes([0x80 | 126]) + struct.pack(">H", length)
        else:
            size = bytes([0x80 | 127]) + struct.pack(">Q", length)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        self._socket.sendall(bytes([0x80 | opcode]) + size + mask + masked)

    def _receive(self, until: float) -> bool:
        while (frame := self._frame()) is None:
            if not (more := self._read(until)):
                return False
            self._rest += more
        opcode, payload = frame
        if opcode == _TEXT:
            self.frames.append(json.loads(payload))
        elif opcode == _PING:
            self._send(_PONG, payload)
        return opcode != _CLOSE

    def _frame(self) -> tuple[int, bytes] | None:
        """Return the next complete frame, or None. The game sends no fragments and no masks."""
        data = self._rest
        if len(data) < 2:
            return None
        length, at = data[1] & 0x7F, 2
        if length >= 126:
            wide = 2 if length == 126 else 8
            length, at = int.from_bytes(data[2 : 2 + wide]), 2 + wide
        if len(data) < at + length:
            return None
        self._rest = data[at + length :]
        return data[0] & 0x0F, data[at : at + length]


@contextmanager
def at_the_web_client(game: Evennia, name: str, password: str) -> Iterator[WebClient]:
    """Log in at the web client, and wait until the account controls its character."""
    with WebClient(HOST, game.ports.websocket) as client:
        client.wait_for("connect <name> <password>")
        client.send(f"connect {name} {password}")
        client.wait_for("You become|Exits", seconds=60)
        client.wait_for_quiet()
        yield client
