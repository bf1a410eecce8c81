"""Bodies of answers as they come: how much of one is read, and the events of a stream in it.

A server decides what it sends, and the size in bytes alone does not bound the work with it: chunks,
lines and events each cost far more than their bytes, so they are counted before they are worked on.
Only the data of server-sent events (WHATWG HTML, 9.2) is given out: the providers repeat the
event's name inside. Comments, which some servers send to keep a connection open, are nothing.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import httpx2

LONGEST_REASON_BYTES: Final = 65_536
"""How much of the body of a failure is read."""

MOST_REASON_CHUNKS: Final = 1_024
"""In how many chunks it may come."""

CHUNKS_BETWEEN: Final = 32
"""After so many chunks that were there at once, other replies have their turn."""

BYTES_BETWEEN: Final = 8_192
"""And after so many bytes: thousands of events may stand in one chunk."""

MOST_CHUNKS: Final = 100_000
"""Chunks in which one body comes."""

CHUNKS_OF_ANY_SIZE: Final = 1_024
CHUNK_BYTES: Final = 32
"""How large the others are on the average: an event with one word in it is larger."""

MOST_EVENTS: Final = 100_000
"""Events of one stream: more than any model writes in its time, a word each."""

MOST_LINES: Final = 4 * MOST_EVENTS
"""Lines of one stream, those included that only keep it open."""

LARGEST_EVENT_BYTES: Final = 1_000_000


class BrokenOff(Exception):  # noqa: N818 - says what happened
    """The connection ended in the middle of a body; never leaves who asked."""


class TooLarge(Exception):  # noqa: N818
    """A body is over a limit; never leaves who asked.

    `problem` says over which, "" where it is the one of bytes.
    """

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        super().__init__(problem)


async def receive(
    response: "httpx2.Response", take: Callable[[bytes], None], *, limit_bytes: int
) -> None:
    """Hand over what comes, until the end.

    Raises:
        BrokenOff: the connection ended before the body did.
        TooLarge: there is more than `limit_bytes`, or more chunks than a body may have; it is read
            no further.
    """
    left, count = limit_bytes, 0
    chunks = response.aiter_bytes()
    while (chunk := await _next(chunks)) is not None:
        left, count = left - len(chunk), count + 1
        if left < 0:
            raise TooLarge
        if problem := _chunk_problem(count, received_bytes=limit_bytes - left):
            raise TooLarge(problem)
        take(chunk[:BYTES_BETWEEN])
        for at in range(BYTES_BETWEEN, len(chunk), BYTES_BETWEEN):
            await asyncio.sleep(0)
            take(chunk[at : at + BYTES_BETWEEN])
        if count % CHUNKS_BETWEEN == 0:
            await asyncio.sleep(0)


async def reason_of(response: "httpx2.Response") -> bytes:
    """The beginning of the body of a failure, however long it is.

    Raises:
        BrokenOff: the connection ended before the body did.
    """
    body, chunks = bytearray(), response.aiter_bytes()
    for _ in range(MOST_REASON_CHUNKS):
        chunk = await _next(chunks)
        if chunk is None:
            break
        body += chunk
        if len(body) >= LONGEST_REASON_BYTES:
            break
    return bytes(body[:LONGEST_REASON_BYTES])


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


def json_object(body: bytes | str) -> dict[str, Any] | None:
    """The JSON object in `body`, None where there is none."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except Exception as problem:  # the transport's own errors; none may be chained
        raise BrokenOff(type(problem).__name__) from None


def _chunk_problem(count: int, *, received_bytes: int) -> str:
    """Why a body comes in too many chunks, "" where it does not."""
    if count > MOST_CHUNKS:
        return f"the reply comes in more than {MOST_CHUNKS} chunks"
    if count > CHUNKS_OF_ANY_SIZE + received_bytes // CHUNK_BYTES:
        return f"the reply comes in chunks of less than {CHUNK_BYTES} bytes"
    return ""
