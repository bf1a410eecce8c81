"""Server-sent events, read from the bytes of a stream as they come (WHATWG HTML, 9.2).

Only the data of events is given out: the providers repeat the event's name inside. Comments, which
some servers send to keep a connection open, are nothing.
"""

from collections.abc import Iterator


class EventReader:
    """Keeps what has come of an event until it is whole."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._data: list[str] = []

    def fed(self, chunk: bytes) -> Iterator[str]:
        """The data of each event that `chunk` completes."""
        first, *others = chunk.split(b"\n")
        self._line.append(first)
        for begun in others:
            whole = b"".join(self._line).decode("utf-8", "replace").removesuffix("\r")
            self._line = [begun]
            yield from self._event_after(whole)

    def ended(self) -> Iterator[str]:
        """The data of an event that the end of the stream completes."""
        yield from self.fed(b"\n\n")

    def _event_after(self, line: str) -> Iterator[str]:
        field, _, value = line.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))
        elif not line and self._data:
            yield "\n".join(self._data)
            self._data = []
