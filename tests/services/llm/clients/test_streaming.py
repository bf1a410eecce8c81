"""Test streamed replies: heard in order, never after the end, never twice."""

from threading import get_ident
from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from evennia_ai.engine.errors import ModelRefused, ModelRubbish, ModelTimeout, ModelUnavailable
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import ChatReply, Usage
from evennia_ai.services.llm.failures import UNENDED
from tests.services.llm.builders import a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    answers,
    delta,
    drips,
    event,
    fails,
    sends,
    stalls,
    streamed,
    streams,
    streams_and_stalls,
)
from tests.services.llm.conftest import Making
from tests.services.net.handover import Handover


class Hearing:
    """A client of a server with some behaviours, which stores what is heard."""

    def __init__(self, server: StubServer, model: Making, reactor: Handover) -> None:
        self.pieces: list[str] = []
        self.threads: set[int] = set()
        self._server, self._model, self._reactor = server, model, reactor

    def __call__(self, *behaviours: Behaviour, **endpoint: Any) -> Any:
        self._server.behaves(*behaviours)
        asked = self._model(**endpoint).complete(a_request(), listener=self.hear)
        return self._reactor.outcome_of(asked)

    def hear(self, piece: str) -> None:
        self.pieces.append(piece)
        self.threads.add(get_ident())

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@pytest.fixture
def hearing(server: StubServer, model: Making, reactor: Handover) -> Hearing:
    return Hearing(server, model, reactor)


def test_openai_stream_is_heard_in_order_before_the_reply(hearing: Hearing) -> None:
    reply = hearing(streams(*streamed("The ", "ferry ", "is late. ⛴"), pause=0.01))
    assert reply == ChatReply(
        text="The ferry is late. ⛴",
        model="tiny",
        finish_reason="stop",
        usage=Usage(input_tokens=12, output_tokens=3, cached_tokens=8),
    )
    assert hearing.text == reply.text
    assert hearing.threads == {get_ident()}


def test_stream_request_asks_for_usage(hearing: Hearing, server: StubServer) -> None:
    hearing(streams(*streamed("Aye.")))
    (seen,) = server.requests
    assert seen.body["stream"] is True
    assert seen.body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("asked", [{"stream": False}, {}])
def test_body_instead_of_a_stream_is_a_reply_without_listening(
    hearing: Hearing, server: StubServer, asked: dict[str, Any]
) -> None:
    assert hearing(answers("Aye."), **asked).text == "Aye."
    assert hearing.pieces == []
    assert ("stream" in server.requests[0].body) == (asked == {})


def test_reasoning_is_neither_heard_nor_returned(hearing: Hearing) -> None:
    thoughts = [delta(reasoning_content="He lies."), delta("", reasoning="Why?")]
    reply = hearing(streams(*map(event, thoughts), *streamed("Aye.")))
    assert (reply.text, hearing.text) == ("Aye.", "Aye.")


def test_stream_with_only_reasoning_fails_with_advice(hearing: Hearing) -> None:
    thoughts = [delta(reasoning_content="Hm."), delta(finish="length")]
    problem = hearing(streams(*map(event, thoughts)))
    assert isinstance(problem, ModelRubbish)
    assert "(finish reason 'length'): the model only reasoned; allow more tokens" in str(problem)


def test_tool_calls_of_a_stream_are_joined_by_index(hearing: Hearing) -> None:
    def calls(*pieces: dict[str, Any]) -> bytes:
        return event(delta(tool_calls=list(pieces)))

    reply = hearing(
        streams(
            calls({"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}),
            calls({"index": 1, "id": "b", "function": {"name": "give", "arguments": '{"to"'}}),
            calls({"index": 0, "function": {"arguments": "{}"}}),
            calls({"index": 1, "function": {"arguments": ': "Anna"}'}}),
            event(delta(finish="tool_calls")),
            event("[DONE]"),
        )
    )
    assert reply.tool_calls == (
        ToolCall(id="a", name="look", arguments="{}"),
        ToolCall(id="b", name="give", arguments='{"to": "Anna"}'),
    )
    assert (reply.text, reply.finish_reason, hearing.pieces) == ("", "tool_calls", [])


@pytest.mark.parametrize("index", [{"index": 0}, {}])
def test_complete_calls_with_one_index_are_told_apart_by_id(
    hearing: Hearing, index: dict[str, int]
) -> None:
    pieces = [
        delta(tool_calls=[{**index, "id": one, "function": {"name": "look", "arguments": "{}"}}])
        for one in "ab"
    ]
    reply = hearing(streams(*map(event, pieces), *streamed()))
    assert [call.id for call in reply.tool_calls] == ["a", "b"]


@pytest.mark.parametrize(
    "events",
    [
        [event(delta("The ferry")), b'data: {"choices": [{"delta": {"content": " is'],
        [],
    ],
)
def test_openai_stream_that_breaks_off_is_an_error(hearing: Hearing, events: list[bytes]) -> None:
    problem = hearing(streams(*events))
    assert isinstance(problem, ModelUnavailable)
    assert "broke off in the reply" in str(problem)


@pytest.mark.parametrize(
    "events",
    [streamed("Aye.")[:-1], streamed("Aye.")[:-2], [event(delta("Aye.")), event("[DONE]")]],
)
def test_stream_is_complete_with_finish_reason_or_end_mark(
    hearing: Hearing, events: list[bytes]
) -> None:
    assert hearing(streams(*events)).text == "Aye."


def test_openai_text_stream_without_end_mark_is_a_reply(hearing: Hearing) -> None:
    reply = hearing(streams(event(delta("The ")), event(delta("ferry."))))
    assert (reply.text, reply.finish_reason, hearing.text) == ("The ferry.", UNENDED, "The ferry.")
    assert reply.is_cut


def test_half_a_call_in_a_stream_without_end_mark_is_an_error(hearing: Hearing) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"at":'}}
    problem = hearing(streams(event(delta("Wait.")), event(delta(tool_calls=[call]))))
    assert isinstance(problem, ModelUnavailable)


def test_last_event_without_blank_line_is_read(hearing: Hearing) -> None:
    assert hearing(streams(event(delta("Aye.")), b"data: [DONE]")).text == "Aye."


def test_broken_connection_in_a_stream_is_an_error(hearing: Hearing) -> None:
    def breaks_off(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.send(event(delta("The")))

    problem = hearing(breaks_off)
    assert isinstance(problem, ModelUnavailable)
    assert hearing.text == "Th"  # A letter that may begin the key waits for the next letter.


def test_stalled_openai_stream_fails_at_the_idle_limit(hearing: Hearing) -> None:
    problem = hearing(streams_and_stalls(event(delta("The"))), idle_seconds=0.2)
    assert isinstance(problem, ModelTimeout)
    assert "model 'stub' was still silent after 0.2 seconds" in str(problem)


def test_stream_that_never_begins_fails_at_the_idle_limit(hearing: Hearing) -> None:
    problem = hearing(stalls, idle_seconds=0.2, max_retries=2)
    assert isinstance(problem, ModelTimeout)
    assert problem.timeout_seconds == 0.2


def test_dripping_stream_fails_at_the_total_limit(hearing: Hearing) -> None:
    dripping = drips(b"".join(streamed("Aye.")), pause=0.05, content_type="text/event-stream")
    problem = hearing(dripping, idle_seconds=0.2, timeout_seconds=0.5)
    assert isinstance(problem, ModelTimeout)
    assert "was still answering after 0.5 seconds" in str(problem)


def test_stream_that_stalls_after_its_text_is_a_reply(hearing: Hearing, server: StubServer) -> None:
    assert hearing(streams_and_stalls(*streamed("Aye.")[:2]), idle_seconds=2.0).text == "Aye."
    assert server.left.wait(60)


def test_stream_is_read_only_to_the_size_limit(hearing: Hearing) -> None:
    problem = hearing(streams(*streamed(*["x" * 1000] * 200)), max_reply_bytes=50_000)
    assert isinstance(problem, ModelRubbish)
    assert "larger than 50000 bytes" in str(problem)


def test_framing_of_a_stream_does_not_count_as_text(hearing: Hearing) -> None:
    assert hearing(streams(*streamed(*"x" * 900)), max_reply_bytes=10_000).text == "x" * 900


def test_stream_without_text_has_a_size_limit(hearing: Hearing) -> None:
    thoughts = event(delta(reasoning_content="x" * 1000))
    problem = hearing(streams(*[thoughts] * 1000), max_reply_bytes=10_000)
    assert isinstance(problem, ModelRubbish)


@pytest.mark.parametrize(
    ("data", "kind", "said"),
    [
        ("{", ModelRubbish, "a piece of the stream is not a JSON object"),
        ({"error": {"message": "no more"}}, ModelRubbish, "the server sent an error: no more"),
        ({"error": {"code": 502, "message": "upstream"}}, ModelUnavailable, "status 502: upstream"),
        ({"error": {"code": 400, "message": "too long"}}, ModelRefused, "status 400: too long"),
    ],
)
def test_error_in_an_openai_stream_fails_the_request(
    hearing: Hearing, data: Any, kind: type[Exception], said: str
) -> None:
    problem = hearing(streams(event(delta("The")), event(data)))
    assert isinstance(problem, kind)
    assert said in str(problem)


@pytest.mark.parametrize("odd", [{}, {"choices": None}, {"choices": [{"delta": [1]}]}])
def test_unknown_pieces_add_no_text(hearing: Hearing, odd: dict[str, Any]) -> None:
    assert hearing(streams(b": still there\n\n", event(odd), *streamed("Aye."))).text == "Aye."


def test_stream_that_failed_before_any_text_is_retried(
    hearing: Hearing, server: StubServer
) -> None:
    broken = fails(503, retry_after_ms="1")
    reply = hearing(broken, streams(event({})), streams(*streamed("Aye.")), max_retries=2)
    assert (reply.text, hearing.text, len(server.requests)) == ("Aye.", "Aye.", 3)


def test_stream_that_failed_after_text_is_not_retried(hearing: Hearing, server: StubServer) -> None:
    half = streams(event(delta("The")), b'data: {"choices"')
    problem = hearing(half, streams(*streamed("Aye.")), max_retries=2)
    assert isinstance(problem, ModelUnavailable)
    assert (hearing.text, len(server.requests)) == ("Th", 1)


def test_cancelled_stream_closes_its_connection_and_is_silent(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(streams_and_stalls(event(delta("The"))))
    pieces: list[str] = []
    asked = model().complete(a_request(), listener=pieces.append)
    reactor.make_next_call()
    assert pieces == ["Th"]
    asked.cancel()
    assert isinstance(reactor.outcome_of(asked), CancelledError)
    assert server.left.wait(60)
    reactor.make_waiting_calls()
    assert pieces == ["Th"]


def test_data_under_way_when_a_stream_is_cancelled_is_not_heard(
    server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(streams_and_stalls(event(delta("The"))))
    pieces: list[str] = []
    asked = model().complete(a_request(), listener=pieces.append)
    assert reactor.waits_for_a_call()
    asked.cancel()
    assert isinstance(reactor.outcome_of(asked), CancelledError)
    assert server.left.wait(60)
    reactor.make_waiting_calls()
    assert pieces == []


def test_slow_body_has_no_idle_limit_before_its_headers(hearing: Hearing) -> None:
    def slow(handler: Any) -> None:
        handler.stub.released.wait(4.0)
        sends(b'{"choices": [{"message": {"content": "Aye."}}]}')(handler)

    assert hearing(slow, stream=False, idle_seconds=2.0).text == "Aye."


def test_body_that_stalls_after_its_headers_fails_at_the_idle_limit(hearing: Hearing) -> None:
    problem = hearing(streams_and_stalls(b"{"), stream=False, idle_seconds=0.2)
    assert isinstance(problem, ModelTimeout)
    assert "silent" in str(problem)
