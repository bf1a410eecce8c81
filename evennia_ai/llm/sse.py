"""Server-sent events, read from the bytes of a stream as they come (WHATWG HTML, 9.2).

Only the data of events is given out: the providers repeat the event's name inside. Comments, which
some servers send to keep a connection open, are nothing. How many lines and events there may be,
and how large one of them, is bounded: each costs far more than its bytes.
"""

from collections.abc import Iterator
from typing import Final

from evennia_ai.llm.reply_bounds import MOST_EVENTS, MOST_LINES
from evennia_ai.llm.transport import TooLarge

LARGEST_EVENT_BYTES: Final = 1_000_000


class EventReader:
    """Keeps what has come of an event until it is whole.

    `limit_bytes` is how large one may be.
    """

    def __init__(self, *, limit_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._limit_bytes: Final = limit_bytes
        self._event_bytes = 0
        self._left_lines = MOST_LINES
        self._left_events = MOST_EVENTS

    def fed(self, chunk: bytes) -> Iterator[str]:
        """The data of each event that `chunk` completes; TooLarge: there is too much of it."""
        self._left_lines -= chunk.count(b"\n")
        if self._left_lines < 0:
            raise TooLarge(f"the reply has more than {MOST_LINES} lines")
        first, *others = chunk.split(b"\n")
        self._grow(len(first))
        self._line.append(first)
        for begun in others:
            whole = b"".join(self._line).decode("utf-8", "replace").removesuffix("\r")
            self._line = [begun]
            yield from self._event_after(whole)
            self._grow(len(begun))

    def ended(self) -> Iterator[str]:
        """The data of an event that the end of the stream completes."""
        yield from self.fed(b"\n\n")

    def _grow(self, count: int) -> None:
        """So many bytes more came of the event that is read."""
        self._event_bytes += count
        if self._event_bytes > self._limit_bytes:
            raise TooLarge(f"an event of the reply is larger than {self._limit_bytes} bytes")

    def _event_after(self, line: str) -> Iterator[str]:
        field, _, value = line.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        elif not line:
            self._event_bytes = 0
            if self._data:
                self._left_events -= 1
                if self._left_events < 0:
                    raise TooLarge(f"the reply has more than {MOST_EVENTS} events")
                yield "\n".join(self._data)
                self._data = []
