"""What a player's connections to the game have in common: how something is read and waited for.

Standard library only: `make play` runs it in the machine's Python.
"""

import re
import socket
import time
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from server.steps import StepError


class Client(ABC):
    """A connection; a `with` block ends it.

    `text` is what a person has been shown since they typed last.
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
        """What is shown since the last line was typed, without colours and markup."""

    @abstractmethod
    def send(self, line: str) -> None:
        """Type a line; what came before is forgotten."""

    @abstractmethod
    def forget(self) -> None:
        """Forget what came, without typing anything."""

    def close(self) -> None:
        """End the connection, as one who pulls the plug."""
        self._socket.close()

    def wait_for(self, pattern: str, *, seconds: float = 20.0) -> str:
        """What is shown, once `pattern` is found in it.

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
        """What is shown, once nothing more comes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self._receive(time.monotonic() + quiet_seconds):
            pass
        return self.text

    @abstractmethod
    def _receive(self, until: float) -> bool:
        """Whether anything came before `until`, of the monotonic clock."""

    def _read(self, until: float) -> bytes:
        """The bytes that came before `until`; none where nothing came, or the game hung up."""
        self._socket.settimeout(max(0.05, until - time.monotonic()))
        try:
            return self._socket.recv(65536)
        except TimeoutError:
            return b""
