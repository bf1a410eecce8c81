"""Events come out of a stream whole, wherever it is cut; a body is closed where it is left."""

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, cast

import pytest

from evennia_ai.net.http import LONGEST_REASON_BYTES, EventReader, TooLarge, reason_of, receive

if TYPE_CHECKING:
    from httpx2 import Response


def events_of(*chunks: bytes) -> list[str]:
    reader = EventReader()
    read = [data for chunk in chunks for data in reader.fed(chunk)]
    return [*read, *reader.ended()]


def test_an_event_is_whole_at_its_blank_line() -> None:
    reader = EventReader()
    assert list(reader.fed(b"data: one\n")) == []
    assert list(reader.fed(b"\ndata: two\n\ndata:")) == ["one", "two"]


def test_a_stream_cut_at_every_byte_has_the_same_events() -> None:
    stream = "event: x\r\ndata: hé 🚢\r\n\r\n: comment\ndata:two\nid: 7\n\n".encode()
    whole = events_of(stream)
    assert whole == ["hé 🚢", "two"]
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == whole


def test_lines_of_data_of_one_event_are_joined() -> None:
    assert events_of(b"data: {\ndata: }\n\n") == ["{\n}"]


def test_events_without_data_and_comments_are_nothing() -> None:
    assert events_of(b"\n\n: hello\n\nevent: ping\n\nretry: 5\n\n") == []


def test_the_end_completes_the_last_event() -> None:
    assert events_of(b"data: [DONE]") == ["[DONE]"]


def test_an_empty_stream_has_no_events() -> None:
    assert events_of() == []


def test_bytes_that_are_no_text_do_not_stop_the_stream() -> None:
    assert events_of(b"data: \xff\xfe\n\ndata: two\n\n") == ["\ufffd\ufffd", "two"]


def test_a_long_line_in_tiny_pieces_is_read_in_linear_time() -> None:
    reader = EventReader()
    for _ in range(300_000):
        assert not list(reader.fed(b"x"))
    assert list(reader.fed(b"\n\ndata: two\n\n")) == ["two"]


class Body:
    """Stands for an answer of httpx2 with a body in chunks; `is_closed` tells how it was left."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = chunks
        self.is_closed = False

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        try:
            for chunk in self._chunks:
                yield chunk
        finally:
            self.is_closed = True


def test_a_body_that_is_too_large_is_closed_before_anybody_is_told() -> None:
    body = Body(b"one", b"two")

    async def read() -> None:
        with pytest.raises(TooLarge):
            await receive(cast("Response", body), lambda _: None, limit_bytes=2)
        assert body.is_closed

    asyncio.run(read())


def test_a_long_reason_is_closed_where_it_is_left() -> None:
    body = Body(b"x" * LONGEST_REASON_BYTES, b"two")

    async def read() -> None:
        assert len(await reason_of(cast("Response", body))) == LONGEST_REASON_BYTES
        assert body.is_closed

    asyncio.run(read())
