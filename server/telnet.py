"""A telnet client of a few lines, to see what a player sees.

Python's own telnetlib left in 3.13. Options are refused, but for the window's size: a tall window
is not paged; and for links, where they are wanted.
"""

import codecs
import re

from server.client import Client

IAC, DONT, DO, WONT, WILL, SB, SE = 255, 254, 253, 252, 251, 250, 240
NAWS, MXP = 31, 91
_WINDOW = bytes([IAC, SB, NAWS, 0, 200, 0x27, 0x10, IAC, SE])
"""200 columns, 10,000 lines."""

_MARKUP = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f\x7f]")


def plain(text: str) -> str:
    """`text` without colours and other control sequences, with line feeds alone as line ends."""
    return _MARKUP.sub("", text.replace("\r\n", "\n").replace("\n\r", "\n"))


class Connection(Client):
    """A player's connection by telnet; with `links` the client takes MXP.

    `raw` is every byte that came since the last line was typed.
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
        """Send what no client would; what came before is forgotten."""
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
    """Separates text from telnet's options, and answers those; keeps what arrived in halves.

    With `links` it takes MXP where that is offered.
    """

    def __init__(self, *, links: bool = False) -> None:
        self._taken = frozenset({MXP} if links else ())
        self._rest = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def read(self, data: bytes) -> tuple[str, bytes]:
        """The text in `data`, and what to send back."""
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
    """How long the command at `at` is; 0 when its end has not arrived yet."""
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
