"""Events come out of a stream whole, wherever the network cuts it."""

from evennia_ai.net.http import EventReader


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
