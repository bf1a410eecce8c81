"""Test that a stream is read completely, whatever its framing, even if none was requested."""

import json
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelRubbish
from evennia_ai.services.llm.clients import remote
from tests.services.llm.builders import a_request
from tests.services.llm.clients.stub_server import (
    USAGE,
    Behaviour,
    StubServer,
    completion,
    delta,
    event,
    streamed,
    streams,
)
from tests.services.llm.conftest import Making
from tests.services.net.handover import Handover

PIECES = streamed("Aye, ", "she leaves.")
BEGUN, REST = PIECES[:1], PIECES[1:]


def typed(content_type: str | None, *events: bytes) -> Behaviour:
    """Send events with some content type, or without one."""

    def behave(handler: Any) -> None:
        handler.send_response(200)
        if content_type is not None:
            handler.send_header("Content-Type", content_type)
        handler.end_headers()
        handler.send(b"".join(events))

    return behave


def choice(**members: Any) -> bytes:
    return event({"choices": [{"index": 0, **members}]})


WAYS: dict[str, Behaviour] = {
    "CRLF": streams(*(one.replace(b"\n", b"\r\n") for one in PIECES)),
    "CR": streams(*(one.replace(b"\n", b"\r") for one in PIECES)),
    "a byte order mark": streams(b"\xef\xbb\xbf", *PIECES),
    "empty data": streams(*BEGUN, b"data:\n\n", b"data: \n\n", b"data\n\n", *REST),
    "a ping as text": streams(*BEGUN, b"event: ping\ndata: ping\n\n", *REST),
    "null": streams(*BEGUN, b"data: null\n\n", *REST),
    "other values": streams(*BEGUN, b'data: 1\n\ndata: ""\n\ndata: []\n\n', *REST),
    "comments and ids": streams(b"retry: 3\n\nid: 7\n", *BEGUN, b": PROCESSING\n\n", *REST),
    "a mark before each event": streams(*(b"\xef\xbb\xbf" + one for one in PIECES)),
    "no blank lines": streams(*(one.replace(b"\n\n", b"\n") for one in PIECES)),
    "the end glued on": streams(*PIECES[:-2], PIECES[-2][:-1] + PIECES[-1]),
    "JSON lines": typed(
        "application/x-ndjson",
        *(one.removeprefix(b"data: ").replace(b"\n\n", b"\n") for one in PIECES),
    ),
    "JSON and an end mark": typed(
        "application/json", json.dumps(completion("Aye, she leaves.")).encode(), b"\n\n", PIECES[-1]
    ),
    "another choice beside": streams(
        event({"choices": [{"index": 1, "delta": {"content": "No."}}, {"index": 0, "delta": {}}]}),
        *PIECES,
    ),
    "an error that is none": streams(
        *BEGUN, event({"choices": [], "error": {"code": 0, "message": ""}}), *REST
    ),
    "texts as parts": streams(event(delta(["Aye, ", "she leaves."])), event("[DONE]")),
    "as JSON": typed("application/json", *PIECES),
    "as plain text": typed("text/plain; charset=utf-8", *PIECES),
    "without a type": typed(None, b": hello\n\n", *PIECES),
    "no end mark": streams(*PIECES[:-1]),
    "no reason to stop": streams(*PIECES[:2], PIECES[-1]),
    "neither": streams(*PIECES[:2]),
    "message for delta": streams(
        choice(message={"content": "Aye, "}), choice(message={"content": "she leaves."})
    ),
    "text for delta": streams(choice(text="Aye, "), choice(text="she leaves."), event("[DONE]")),
    "all of it once more": streams(
        *PIECES[:2], choice(delta={}, message={"content": "Aye, she leaves."}, finish_reason="stop")
    ),
    "message beside delta": streams(
        choice(delta={"content": "Aye, "}, message={"content": "Aye, "}),
        choice(delta={"content": "she leaves."}, message={"content": "Aye, she leaves."}),
    ),
    "one object as a stream": typed(
        "text/event-stream", json.dumps(completion("Aye, she leaves.")).encode()
    ),
    "parts of another name": streams(
        event(delta([{"type": "output_text", "text": "Aye, she leaves."}])), event("[DONE]")
    ),
}


@pytest.mark.parametrize("is_heard", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_stream_is_complete_in_every_framing(
    server: StubServer, model: Making, reactor: Handover, way: str, is_heard: bool
) -> None:
    server.behaves(WAYS[way])
    pieces: list[str] = []
    listener = pieces.append if is_heard else None
    reply = reactor.outcome_of(model().complete(a_request(), listener=listener))
    assert reply.text == "Aye, she leaves."
    assert "".join(pieces) in ("", reply.text)


def test_unrequested_stream_keeps_its_usage(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(streams(*PIECES))
    usage = reactor.outcome_of(model().complete(a_request())).usage
    assert usage.input_tokens == USAGE["prompt_tokens"]


@pytest.mark.parametrize(
    "events",
    [
        [delta("Aye, ", finish="stop"), delta("she leaves.", finish="stop")],
        [delta("", finish="stop"), delta("Aye, ", finish="stop"), delta("she leaves.")],
    ],
)
def test_stop_reason_in_each_piece_does_not_end_the_stream(
    server: StubServer,
    model: Making,
    reactor: Handover,
    monkeypatch: pytest.MonkeyPatch,
    events: list[dict[str, Any]],
) -> None:
    monkeypatch.setattr(remote, "ENDING_SECONDS", 0.01)
    server.behaves(streams(*map(event, events), event("[DONE]"), pause=0.1))
    asked = model().complete(a_request(), listener=lambda _: None)
    assert reactor.outcome_of(asked).text == "Aye, she leaves."


def test_keep_alive_data_after_the_text_does_not_delay_the_reply(
    server: StubServer, model: Making, reactor: Handover, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "ENDING_SECONDS", 0.2)
    server.behaves(streams(*PIECES[:-1], *[b": ping\n\n"] * 1000, pause=0.05))
    asked = model().complete(a_request(timeout_seconds=5.0), listener=lambda _: None)
    assert reactor.outcome_of(asked, 10).text == "Aye, she leaves."


def test_pieces_without_blank_lines_are_counted(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(streams(b"data: {}\n" * 110_000 + b"\n"))
    problem = reactor.outcome_of(model().complete(a_request()), 30)
    assert isinstance(problem, ModelRubbish)
    assert problem.too_much


def test_html_page_is_reported_with_status_type_and_words(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    page = b"<!doctype html><html><head><title>Sign in</title></head><body>x</body></html>"
    server.behaves(typed("text/html", page))
    problem = reactor.outcome_of(model().complete(a_request()))
    assert isinstance(problem, ModelRubbish)
    assert "not a JSON object (status 200, text/html: Sign in)" in str(problem)
