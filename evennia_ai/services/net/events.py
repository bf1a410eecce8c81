"""Read server-sent events (WHATWG HTML, 9.2) from the body of a response of any content type.

Only the data of an event is returned, because providers repeat the event's name in it. Comments,
with which some servers keep a connection open, and events without data are ignored. Each line and
event costs far more work than its bytes suggest, so their number is limited too.
"""

import json
from collections.abc import Iterator
from typing import Final

from evennia_ai.services.net.http import TooLarge, text_in

MOST_EVENTS: Final = 100_000
"""The most events of one stream. Even with one word per event, no model writes more."""

MOST_LINES: Final = 4 * MOST_EVENTS
"""The most lines of one stream, including those that only keep the connection open."""

LARGEST_EVENT_BYTES: Final = 1_000_000

_BLANKS: Final = b" \t\r\n\xef\xbb\xbf"
"""Characters that may come before a body: white space and the byte order mark."""

_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b"error:", b":")
_START_BYTES: Final = max(map(len, _FIELDS))


class BodyStart:
    """Decides from the first bytes of a body whether it is a stream of events.

    Some servers send a stream as `application/json`, as plain text or without a type. Others
    declare one JSON object as a stream. So the content type counts only if the bytes do not decide.
    """

    def __init__(self, content_type: str) -> None:
        self._is_typed_so = content_type.strip().lower().startswith("text/event-stream")
        self._start = b""

    def is_stream(self, chunk: bytes) -> bool | None:
        """Return True or False once it is certain whether the body is a stream, else None.

        Call it once for each chunk.
        """
        more = chunk if self._start else chunk.lstrip(_BLANKS)
        self._start += more[:_START_BYTES]
        if self._start.startswith(_FIELDS):
            return True
        if any(field.startswith(self._start) for field in _FIELDS):
            return None
        return self._is_typed_so and not self._start.startswith((b"{", b"["))

    def at_the_end(self) -> bool:
        """Return the decision for a body that ended before the bytes decided."""
        return self._is_typed_so


class EventReader:
    """A reader of server-sent events, as WHATWG HTML 9.2 defines them, from chunks cut anywhere.

    Only the data of an event is returned. In addition to the standard: the end of the stream
    completes an event, each line may begin with a byte order mark, and a line that is not UTF-8 is
    decoded by `text_in`. Errors that a server sends (`event: error`, or the field `error` of old
    llama.cpp) are returned as the JSON object `{"error": data}`. An event may have at most
    `limit_bytes`.
    """

    def __init__(self, *, limit_bytes: int = LARGEST_EVENT_BYTES) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._is_error = False
        self._limit_bytes: Final = limit_bytes
        self._event_bytes = 0
        self._left_lines = MOST_LINES
        self._left_events = MOST_EVENTS
        self._ended_with_cr = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of each event that `chunk` completes.

        Raises:
            TooLarge: there are too many lines or events, or one event is too large.
        """
        if self._ended_with_cr and chunk:  # The chunk begins with the second half of a CRLF.
            chunk = chunk.removeprefix(b"\n")
            self._ended_with_cr = False
        if b"\r" in chunk:
            self._ended_with_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._left_lines -= chunk.count(b"\n")
        if self._left_lines < 0:
            raise TooLarge(f"the reply has more than {MOST_LINES} lines")
        first, *others = chunk.split(b"\n")
        self._grow(len(first))
        self._line.append(first)
        for begun in others:
            whole = text_in(b"".join(self._line))
            self._line = [begun]
            yield from self._event_after(whole.removeprefix("\ufeff"))
            self._grow(len(begun))

    def finish(self) -> Iterator[str]:
        """Yield the data of an event that the end of the stream completes."""
        self._ended_with_cr = False
        yield from self.feed(b"\n\n")

    def _grow(self, count: int) -> None:
        """Add to the size of the current event.

        Raises:
            TooLarge: the event is larger than the limit.
        """
        self._event_bytes += count
        if self._event_bytes > self._limit_bytes:
            raise TooLarge(f"an event of the reply is larger than {self._limit_bytes} bytes")

    def _event_after(self, line: str) -> Iterator[str]:
        if not line:
            self._event_bytes = 0
            data, is_error = "\n".join(self._data), self._is_error
            self._data, self._is_error = [], False
            if data:
                self._left_events -= 1
                if self._left_events < 0:
                    raise TooLarge(f"the reply has more than {MOST_EVENTS} events")
                yield json.dumps({"error": data}) if is_error else data
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):
            self._data.append(value)
            self._is_error = self._is_error or field == "error"
        elif field == "event":
            self._is_error = value == "error"
