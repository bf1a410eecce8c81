"""A telnet client of a few lines, to see what a player sees.

Python's own telnetlib left in 3.13. Options are refused, but for the window's size: a tall window
is not paged.
"""

import codecs
import re
import socket
import time
from types import TracebackType
from typing import Self

from server.steps import StepError

IAC, DONT, DO, WONT, WILL, SB, SE = 255, 254, 253, 252, 251, 250, 240
NAWS = 31
_WINDOW = bytes([IAC, SB, NAWS, 0, 200, 0x27, 0x10, IAC, SE])
"""200 columns, 10,000 lines."""

_MARKUP = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b-\x1f\x7f]")


def plain(text: str) -> str:
    """`text` without colours and other control sequences, with line feeds alone as line ends."""
    return _MARKUP.sub("", text.replace("\r\n", "\n").replace("\n\r", "\n"))


class Connection:
    """A player's connection to the game."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=10)
        self._negotiation = Negotiation()
        self._received = ""

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
        """Type `line`; what came before is forgotten."""
        self._received = ""
        self._socket.sendall(line.encode() + b"\r\n")

    def wait_for(self, pattern: str, *, seconds: float) -> str:
        """Everything received since the last line was sent, once `pattern` is found in it.

        Raises:
            StepError: it did not come in time; the text holds what came instead.
        """
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text, re.MULTILINE):
            if time.monotonic() > end or not self._receive(end):
                raise StepError(
                    f"waited {seconds:.0f} s for {pattern!r}; the game said: {self.text[-2000:]!r}"
                )
        return self.text

    def wait_for_quiet(self, *, quiet_seconds: float = 1.0, seconds: float = 20.0) -> str:
        """Everything received since the last line was sent, once nothing more comes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._receive(time.monotonic() + quiet_seconds):
            pass
        return self.text

    @property
    def text(self) -> str:
        return plain(self._received)

    def _receive(self, until: float) -> bool:
        """Whether anything came before `until`."""
        self._socket.settimeout(max(0.05, until - time.monotonic()))
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return False
        if data:
            text, answer = self._negotiation.read(data)
            self._received += text
            if answer:
                self._socket.sendall(answer)
        return bool(data)


class Negotiation:
    """Separates text from telnet's options, and answers those; keeps what arrived in halves."""

    def __init__(self) -> None:
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
            answer += _answer(data[at : at + length])
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


def _answer(command: bytes) -> bytes:
    if command[1] == DO and command[2] == NAWS:
        return bytes([IAC, WILL, NAWS]) + _WINDOW
    if command[1] == DO:
        return bytes([IAC, WONT, command[2]])
    if command[1] == WILL:
        return bytes([IAC, DONT, command[2]])
    return b""
