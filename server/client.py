"""The shared code of connections that play the game: reading, and waiting for text.

Standard library only, because `make play` runs it in the machine's Python.
"""

import re
import socket
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from server.steps import StepError


class Client(ABC):
    """A connection of a player; a `with` block closes it.

    `text` is what the player was shown since the last typed line.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    @abstractmethod
    def text(self) -> str:
        """The text shown since the last line was typed, without colours and markup."""

    @abstractmethod
    def send(self, line: str) -> None:
        """Type a line. Text from before is dropped."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the text that arrived so far."""

    def close(self) -> None:
        """Close the connection abruptly, without logging out."""
        self._socket.close()

    def wait_for(self, pattern: str, *, seconds: float = 20.0) -> str:
        """Wait until `pattern` is in the shown text, and return the text.

        Raises:
            StepError: the pattern did not come in time; the message has the text that came.
        """
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text, re.MULTILINE):
            if time.monotonic() > end or not self._receive(end):
                raise StepError(
                    f"waited {seconds:.0f} s for {pattern!r}; the game said: {self.text[-2000:]!r}"
                )
        return self.text

    def wait_for_quiet(self, *, quiet_seconds: float = 1.0, seconds: float = 20.0) -> str:
        """Wait until nothing more arrives, and return the shown text."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._receive(time.monotonic() + quiet_seconds):
            pass
        return self.text

    @abstractmethod
    def _receive(self, until: float) -> bool:
        """Wait for data until a monotonic time. Return True if some arrived."""

    def _read(self, until: float) -> bytes:
        """Return the bytes that arrive before a monotonic time.

        Empty if nothing arrived or the game closed the connection.
        """
        self._socket.settimeout(max(0.05, until - time.monotonic()))
        try:
            return self._socket.recv(65536)
        except TimeoutError:
            return b""
