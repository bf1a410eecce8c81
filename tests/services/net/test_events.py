"""Test that events are read from a stream, wherever it is cut and whatever its content type."""

import json

import pytest

from evennia_ai.services.net.events import MOST_LINES, BodyStart, EventReader
from evennia_ai.services.net.http import TooLarge


def events_of(*chunks: bytes) -> list[str]:
    reader = EventReader()
    read = [data for chunk in chunks for data in reader.feed(chunk)]
    return [*read, *reader.finish()]


def test_event_is_complete_at_its_blank_line() -> None:
    reader = EventReader()
    assert list(reader.feed(b"data: one\n")) == []
    assert list(reader.feed(b"\ndata: two\n\ndata:")) == ["one", "two"]


def test_stream_cut_at_every_byte_has_the_same_events() -> None:
    stream = "event: x\r\ndata: hé 🚢\r\n\r\n: comment\ndata:two\nid: 7\n\n".encode()
    whole = events_of(stream)
    assert whole == ["hé 🚢", "two"]
    assert events_of(*(stream[at : at + 1] for at in range(len(stream)))) == whole


def test_data_lines_of_one_event_are_joined() -> None:
    assert events_of(b"data: {\ndata: }\n\n") == ["{\n}"]


@pytest.mark.parametrize(
    "stream",
    [
        b"\n\n: hello\n\nevent: ping\n\nretry: 5\n\n",
        b"data:\n\n",
        b"data: \n\n",
        b"data\n\n",
        b"event: error\ndata:\n\n",
    ],
)
def test_comments_and_events_without_data_are_ignored(stream: bytes) -> None:
    assert events_of(stream) == []


def test_data_in_latin_1_is_read() -> None:
    assert events_of("data: Grüße\n\n".encode("latin-1")) == ["Grüße"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_every_line_end_of_the_standard_is_read(end: bytes, size: int) -> None:
    stream = end.join([b"\xef\xbb\xbfdata: one", b"data: more", b"", b": x", b"data:two", b"", b""])
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert events_of(*chunks) == ["one\nmore", "two"]


def test_split_crlf_is_one_line_end() -> None:
    assert events_of(b"data: one\r", b"", b"\ndata: more\r", b"\n\r", b"\n") == ["one\nmore"]


def test_event_is_returned_at_its_cr() -> None:
    assert list(EventReader().feed(b"data: one\r\r")) == ["one"]


@pytest.mark.parametrize(
    "stream",
    [b'error: {"code":500}\n\n', b'event: error\ndata: {"code":500}\n\n', b'error: {"code":500}'],
)
def test_error_event_is_returned_as_an_error_object(stream: bytes) -> None:
    (data,) = events_of(stream)
    assert json.loads(data) == {"error": '{"code":500}'}


def test_event_stream_is_refused_when_it_has_too_many_carriage_returns() -> None:
    with pytest.raises(TooLarge):
        list(EventReader().feed(b"\r" * (MOST_LINES + 1)))


def test_end_of_the_stream_completes_the_last_event() -> None:
    assert events_of(b"data: [DONE]") == ["[DONE]"]


def test_empty_stream_has_no_events() -> None:
    assert events_of() == []


def test_invalid_bytes_do_not_stop_the_stream() -> None:
    assert events_of(b"data: \xff\xfe\n\ndata: two\n\n") == ["ÿþ", "two"]


def test_long_line_in_tiny_pieces_costs_linear_time() -> None:
    reader = EventReader()
    for _ in range(300_000):
        assert not list(reader.feed(b"x"))
    assert list(reader.feed(b"\n\ndata: two\n\n")) == ["two"]


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    ("content_type", "body", "is_stream"),
    [
        ("text/event-stream", b"data: {}", True),
        ("Text/Event-Stream; charset=utf-8", b"id: 7", True),
        ("application/json", b"data: {}", True),
        ("text/plain", b"\xef\xbb\xbf\r\n: ping", True),
        ("", b"event: ping", True),
        ("", b"retry:5", True),
        ("application/json", b'error: {"code": 500}', True),
        ("application/json", b' \n {"data": 1}', False),
        ("text/event-stream", b'{"choices": []}', False),
        ("text/event-stream", b"[{}]", False),
        ("text/event-stream", b"other: 1", True),
        ("text/html", b"<html>", False),
        ("application/json", b"database", False),
    ],
)
def test_body_is_a_stream_by_its_first_bytes(
    content_type: str, body: bytes, is_stream: bool, size: int
) -> None:
    start = BodyStart(content_type)
    told = [start.is_stream(body[at : at + size]) for at in range(0, len(body), size)]
    assert next(one for one in told if one is not None) is is_stream


def test_body_without_decisive_bytes_is_judged_by_its_type() -> None:
    assert BodyStart("").is_stream(b" \r\n") is None
    assert BodyStart("text/event-stream").at_the_end()
    assert not BodyStart("application/json").at_the_end()
