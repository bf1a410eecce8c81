"""A small telnet client, which shows what a player sees.

Python's own telnetlib was removed in 3.13. This client refuses all telnet options except two: the
size of the window, which is so tall that the game does not page its output, and links, if they are
wanted.
"""

import codecs
import re

from server.client import Client

IAC, DONT, DO, WONT, WILL, SB, SE = 255, 254, 253, 252, 251, 250, 240
NAWS, MXP = 31, 91
_WINDOW = bytes([IAC, SB, NAWS, 0, 200, 0x27, 0x10, IAC, SE])
"""The size of the window: 200 columns and 10,000 lines."""

_MARKUP = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f\x7f]")


def plain(text: str) -> str:
    """Return `text` without colours and other control sequences, and with plain line feeds."""
    return _MARKUP.sub("", text.replace("\r\n", "\n").replace("\n\r", "\n"))


class Connection(Client):
    """A player's connection over telnet.

    With `links`, the client accepts MXP. `raw` has every byte that arrived since the last typed
    line.
    """

    def __init__(self, host: str, port: int, *, links: bool = False) -> None:
        super().__init__(host, port)
        self._negotiation = Negotiation(links=links)
        self._received = ""
        self.raw = b""

    @property
    def text(self) -> str:
        return plain(self._received)

    def send(self, line: str) -> None:
        self.send_bytes(line.encode("utf-8", "replace") + b"\r\n")

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that a normal client would not send. Text from before is dropped."""
        self.forget()
        self._socket.sendall(data)

    def forget(self) -> None:
        self._received, self.raw = "", b""

    def _receive(self, until: float) -> bool:
        data = self._read(until)
        text, answer = self._negotiation.read(data)
        self.raw += data
        self._received += text
        if answer:
            self._socket.sendall(answer)
        return bool(data)


class Negotiation:
    """A parser that separates text from telnet options, and answers the options.

    It keeps incomplete input until the rest arrives. With `links`, it accepts MXP if the server
    offers it.
    """

    def __init__(self, *, links: bool = False) -> None:
        self._taken = frozenset({MXP} if links else ())
        self._rest = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self, data: bytes) -> tuple[str, bytes]:
        """Return the text in `data`, and the bytes to send back."""
        data, self._rest = self._rest + data, b""
        text, answer, at = bytearray(), bytearray(), 0
        while at < len(data):
            if data[at] != IAC:
                text.append(data[at])
                at += 1
                continue
            length = _command_length(data, at)
            if not length:
                self._rest = data[at:]
                break
            answer += _answer(data[at : at + length], taken=self._taken)
            text += b"\xff" if data[at + 1] == IAC else b""
            at += length
        return self._decoder.decode(bytes(text)), bytes(answer)


def _command_length(data: bytes, at: int) -> int:
    """Return the length of the telnet command at `at`, or 0 if its end has not arrived yet."""
    if at + 1 >= len(data):
        return 0
    if data[at + 1] == SB:
        end = data.find(bytes([IAC, SE]), at)
        return end + 2 - at if end >= 0 else 0
    needed = 3 if data[at + 1] in (DO, DONT, WILL, WONT) else 2
    return needed if at + needed <= len(data) else 0


def _answer(command: bytes, *, taken: frozenset[int]) -> bytes:
    if command[1] == DO and command[2] == NAWS:
        return bytes([IAC, WILL, NAWS]) + _WINDOW
    if command[1] == DO:
        return bytes([IAC, WONT, command[2]])
    if command[1] == WILL:
        return bytes([IAC, DO if command[2] in taken else DONT, command[2]])
    return b""
