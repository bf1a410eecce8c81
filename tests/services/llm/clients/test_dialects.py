"""Test how requests adapt to what a server refuses, and what is sent back to it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.errors import Fault, ModelError, ModelRefused, ModelUnavailable
from evennia_ai.services.llm.chat import AnswerSchema, ChatReply, ChatRequest, Thoughts
from evennia_ai.services.llm.clients import anthropic, openai
from evennia_ai.services.llm.clients.anthropic import AnthropicChat
from evennia_ai.services.llm.clients.openai import OpenAIChat
from evennia_ai.services.llm.clients.remote import RemoteChat
from evennia_ai.services.llm.learned import Learned
from evennia_ai.services.llm.profiles import Endpoint, Sampling
from evennia_ai.services.net.bridge import AsyncBridge
from tests.services.llm.builders import a_message, a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    answers,
    completion,
    delta,
    event,
    fails,
    sends,
    streams,
)
from tests.services.net.handover import Handover

Refusal = Callable[[str], Any]


def groq(field: str) -> Any:
    return {"error": {"message": f"property '{field}' is unsupported"}}


def mistral(field: str) -> Any:
    problem = {"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs"}
    return {"object": "error", "message": {"detail": [problem]}}


def gemini(field: str) -> Any:
    words = f'Invalid JSON payload received. Unknown name "{field}": Cannot find field.'
    return [{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}]


def knows(*known: str, refusal: Refusal = groq, streamed: bool = False) -> Behaviour:
    """Answer, or refuse the first unknown field."""

    def behave(handler: Any) -> None:
        unknown = [field for field in handler.seen.body if field not in known]
        if unknown:
            handler.reply(json.dumps(refusal(unknown[0])).encode(), status=400)
        elif streamed:
            streams(event(delta("Aye.")), event(delta(finish="stop")))(handler)
        else:
            answers("Aye.")(handler)

    return behave


class Asking:
    """A client of the stub server. `told` has its messages to an admin."""

    def __init__(self, server: StubServer, bridge: AsyncBridge, reactor: Handover) -> None:
        self.server, self._bridge, self._reactor = server, bridge, reactor
        self.learned = Learned()
        self.told: list[str] = []

    def __call__(
        self,
        *behaviours: Behaviour,
        kind: type[RemoteChat] = OpenAIChat,
        heard: list[str] | None = None,
        **more: Any,
    ) -> Any:
        self.server.behaves(*behaviours)
        endpoint = Endpoint(name="stub", base_url=self.server.base_url, model="tiny", max_retries=0)
        chat = kind(endpoint, self._bridge, learned=self.learned, tell=self.told.append)
        listener = None if heard is None else heard.append
        asked = chat.complete(a_request(**more), listener=listener)
        return self._reactor.outcome_of(asked, 30)


@pytest.fixture
def asking(server: StubServer, bridge: AsyncBridge, reactor: Handover) -> Asking:
    return Asking(server, bridge, reactor)


NEEDED = ("model", "messages", "max_tokens", "stream")
ALL = {"sampling": Sampling(temperature=0.7, seed=3, extra={"top_k": 5}), "cache_key": "npc-1"}


@pytest.mark.parametrize("refusal", [groq, mistral, gemini])
@pytest.mark.parametrize("streamed", [False, True])
def test_refused_field_is_left_out_of_this_and_later_requests(
    asking: Asking, refusal: Refusal, streamed: bool
) -> None:
    server = knows(*NEEDED, refusal=refusal, streamed=streamed)
    heard: list[str] | None = [] if streamed else None
    assert asking(server, heard=heard, **ALL).text == "Aye."
    refused = {"temperature", "seed", "top_k", "user", "prompt_cache_key"}
    refused |= {"stream_options"} if streamed else set()
    assert len(asking.server.requests) == 1 + len(refused)
    assert set(asking.learned.refused) == refused
    told = "\n".join(asking.told)
    assert len(asking.told) == len(refused)
    assert all(f"refuses the field '{one}'" in told for one in refused)
    assert "set extra to {'user': None} in its profile" in told
    asking.server.requests.clear()
    assert asking(server, heard=heard, **ALL).text == "Aye."
    assert len(asking.server.requests) == 1


@pytest.mark.parametrize(
    ("status", "words", "wish", "setting"),
    [
        (400, "System role not supported", "no_system", "system_role to False"),
        (400, "Developer instruction is not enabled for gemma", "no_system", "system_role to"),
        (500, "Jinja Exception: System message must be at the beginning.", "in_turn", "strict"),
        (500, "Conversation roles must alternate user/assistant/user/assistant", "in_turn", "st"),
        (400, "Expected last role User or Tool for serving but got assistant", "in_turn", "strict"),
    ],
)
def test_refused_roles_are_learned_and_reported_once(
    asking: Asking, status: int, words: str, wish: str, setting: str
) -> None:
    for _ in range(2):
        error = asking(fails(status, words))
        assert isinstance(error, ModelRefused)
        assert error.wants_roles == wish
    assert asking.learned.roles == {wish}
    (told,) = asking.told
    assert f"set {setting}" in told
    # The caller sends other messages, because the client does not change them.
    assert len(asking.server.requests) == 2


def test_reply_limit_uses_the_field_name_that_the_server_accepts(asking: Asking) -> None:
    words = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
        " 'max_completion_tokens' instead."
    )
    server = knows(
        "model",
        "messages",
        "max_completion_tokens",
        refusal=lambda _: {"error": {"message": words, "param": "max_tokens"}},
    )
    assert asking(server, max_tokens=77).text == "Aye."
    assert asking.server.requests[-1].body["max_completion_tokens"] == 77
    assert 'set reply_limit to "max_completion_tokens" in its profile' in asking.told[0]
    sampling = Sampling(reply_limit="max_completion_tokens")
    assert "max_tokens" not in openai.body_of(
        a_request(sampling=sampling), model="tiny", stream=False
    )


@pytest.mark.parametrize("needed", ["model", "messages", "tools"])
def test_server_cannot_remove_a_needed_field(asking: Asking, needed: str) -> None:
    server = sends_error(groq(needed))
    assert isinstance(asking(server), ModelRefused)
    assert len(asking.server.requests) == 1
    assert asking.learned.refused == {}


def test_server_that_keeps_refusing_a_field_is_asked_twice(asking: Asking) -> None:
    assert isinstance(asking(sends_error(groq("user")), **ALL), ModelRefused)
    assert len(asking.server.requests) == 2


def sends_error(body: Any, status: int = 400) -> Behaviour:
    return lambda handler: handler.reply(json.dumps(body).encode(), status=status)


def test_request_lacks_the_fields_that_the_profile_sets_to_none(asking: Asking) -> None:
    extra = {"user": None, "prompt_cache_key": None, "temperature": None, "top_k": 5}
    sampling = Sampling(temperature=0.7, extra=extra)
    assert asking(answers("Aye."), sampling=sampling, cache_key="npc-1").text == "Aye."
    assert set(asking.server.requests[0].body) == {"model", "messages", "max_tokens", "top_k"}


# What is sent back with tool calls
def with_call(**message: Any) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [call | message.pop("call", {})],
    } | (message)


SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
DETAILS = [
    {"type": "reasoning.text", "text": "I ", "index": 0},
    {"type": "reasoning.text", "text": "look.", "index": 0, "signature": "s"},
    {"type": "reasoning.encrypted", "data": "xyz", "index": 1},
]
JOINED = [{**DETAILS[0], "text": "I look.", "signature": "s"}, DETAILS[2]]
KEPT: list[tuple[dict[str, Any], Thoughts]] = [
    (with_call(call=SIGNED), Thoughts(calls=(SIGNED,))),
    (
        with_call(reasoning_content="I look."),
        Thoughts(message={"reasoning_content": "I look."}, calls=({},)),
    ),
    (
        with_call(reasoning_details=DETAILS),
        Thoughts(message={"reasoning_details": JOINED}, calls=({},)),
    ),
    (with_call(**SIGNED), Thoughts(message=SIGNED, calls=({},))),
    (
        with_call(call={"function": {"name": "look", "arguments": "{}", "thought": "t"}}),
        Thoughts(calls=({"function": {"thought": "t"}},)),
    ),
]


def after(reply: ChatReply) -> ChatRequest:
    """Return the request with the results of the reply's calls."""
    (call,) = reply.tool_calls
    return a_request(
        messages=(
            a_message("user", "Hello?"),
            a_message("assistant", "", tool_calls=reply.tool_calls),
            a_message("tool", "a boat", tool_call_id=call.id),
        ),
        thoughts={call.id: reply.thoughts or Thoughts()},
    )


@pytest.mark.parametrize(("message", "kept"), KEPT)
@pytest.mark.parametrize("streamed", [False, True])
def test_fields_of_a_call_are_sent_back_unchanged(
    asking: Asking, message: dict[str, Any], kept: Thoughts, streamed: bool
) -> None:
    body = json.dumps({"choices": [{"message": message}]}).encode()
    pieces = [{name: one} for name, one in message.items() if name != "role"]
    if "reasoning_details" in message:
        pieces += [{"reasoning_details": [one]} for one in DETAILS]
        pieces = [one for one in pieces if one.get("reasoning_details") != DETAILS]
    sent = streams(*(event(delta(**one)) for one in pieces), event(delta(finish="tool_calls")))
    heard: list[str] | None = [] if streamed else None
    reply = asking(sent if streamed else sends(body), heard=heard)
    assert reply.thoughts == kept
    assert reply.text == ""
    assert not heard
    wire = openai.body_of(after(reply), model="tiny", stream=False)["messages"][1]
    (call,) = wire.pop("tool_calls")
    beside = dict(kept.calls[0])
    function = {"name": "look", "arguments": "{}", **beside.pop("function", {})}
    assert call == {"id": "c1", "type": "function", "function": function, **beside}
    assert wire == {"role": "assistant", "content": "", **kept.message}


def test_reply_without_calls_keeps_no_thoughts(asking: Asking) -> None:
    sent = completion("Aye.")
    sent["choices"][0]["message"]["reasoning_content"] = "Hm."
    assert asking(sends(json.dumps(sent).encode())).thoughts is None


def test_thoughts_are_sent_only_with_their_own_call(asking: Asking) -> None:
    body = json.dumps({"choices": [{"message": with_call(reasoning_content="Hm.")}]}).encode()
    reply = asking(sends(body))
    request = replace(after(reply), thoughts={"another": reply.thoughts})
    (_, called, _) = openai.body_of(request, model="tiny", stream=False)["messages"]
    assert "reasoning_content" not in called


def av(kind: str, **more: Any) -> bytes:
    return event({"type": kind, **more})


def block(index: int, begun: dict[str, Any], *deltas: dict[str, Any]) -> list[bytes]:
    return [
        av("content_block_start", index=index, content_block=begun),
        *(av("content_block_delta", index=index, delta=one) for one in deltas),
    ]


THINKING = {"type": "thinking", "thinking": "I look.", "signature": "abc"}
REDACTED = {"type": "redacted_thinking", "data": "xyz"}
USED = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "boat"}}


def test_thinking_is_sent_back_before_its_call(asking: Asking) -> None:
    sent = streams(
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "I "},
            {"type": "thinking_delta", "thinking": "look."},
            {"type": "signature_delta", "signature": "abc"},
        ),
        *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Wait."}),
        *block(2, REDACTED),
        *block(
            3, {**USED, "input": {}}, {"type": "input_json_delta", "partial_json": '{"at":"boat"}'}
        ),
        av("message_delta", delta={"stop_reason": "tool_use"}),
        av("message_stop"),
    )
    heard: list[str] = []
    reply = asking(sent, kind=AnthropicChat, heard=heard)
    assert (reply.text, "".join(heard)) == ("Wait.", "Wait.")
    request = after(reply)
    said = a_message("assistant", "Wait.", tool_calls=reply.tool_calls)
    request = a_request(
        messages=(request.messages[0], said, request.messages[2]), thoughts=request.thoughts
    )
    messages = anthropic.body_of(request, model="tiny", stream=False)["messages"]
    assert messages[1]["content"] == [THINKING, {"type": "text", "text": "Wait."}, REDACTED, USED]


def test_thinking_model_is_not_forced_to_call_and_gets_extra_tokens() -> None:
    thinking = {"type": "enabled", "budget_tokens": 2000}
    request = a_request(
        schema=AnswerSchema(name="act", schema={"type": "object"}),
        sampling=Sampling(temperature=0.2, extra={"thinking": thinking}),
        max_tokens=300,
    )
    body = anthropic.body_of(request, model="tiny", stream=False)
    assert body["tool_choice"] == {"type": "auto"}
    assert body["max_tokens"] == 2300
    assert "temperature" not in body
    off = a_request(sampling=Sampling(temperature=0.2, extra={"thinking": {"type": "disabled"}}))
    body = anthropic.body_of(off, model="tiny", stream=False)
    assert (body["max_tokens"], body["temperature"]) == (64, 0.2)


# How replies end
def ended(finish: str, text: str = "The ferry is") -> Behaviour:
    message = {"message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return sends(json.dumps({"choices": [message]}).encode())


@pytest.mark.parametrize(
    ("finish", "fault"),
    [
        ("error", Fault.TEMPORARY),
        ("network_error", Fault.TEMPORARY),
        ("insufficient_system_resource", Fault.TEMPORARY),
        ("content_filter", Fault.POLICY),
        ("refusal", Fault.POLICY),
        ("sensitive", Fault.POLICY),
        ("SAFETY", Fault.POLICY),
    ],
)
def test_filtered_reply_is_a_failure(asking: Asking, finish: str, fault: Fault) -> None:
    for text in ("The ferry is", ""):
        found = asking(ended(finish, text))
        assert isinstance(found, ModelError)
        assert found.fault is fault
        assert finish in str(found)
    heard: list[str] = []
    sent = streams(event(delta("The ferry")), event(delta(finish=finish)))
    assert asking(sent, heard=heard).fault is fault


def test_refusal_in_a_claude_stream_is_a_failure(asking: Asking) -> None:
    sent = streams(
        *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "First you"}),
        av("message_delta", delta={"stop_reason": "refusal"}),
        av("message_stop"),
    )
    assert asking(sent, kind=AnthropicChat, heard=[]).fault is Fault.POLICY


@pytest.mark.parametrize("error", [{"code": 502, "message": "died"}, {"message": "died"}])
def test_error_in_a_choice_is_a_failure(asking: Asking, error: dict[str, Any]) -> None:
    choice = {"message": {"content": "The ferry"}, "finish_reason": "error", "error": error}
    found = asking(sends(json.dumps({"choices": [choice]}).encode()))
    assert isinstance(found, ModelUnavailable)
    assert "died" in str(found)
    piece = delta("")
    piece["choices"][0] |= {"finish_reason": "error", "error": error}
    assert isinstance(
        asking(streams(event(delta("The ferry")), event(piece)), heard=[]), ModelUnavailable
    )


@pytest.mark.parametrize(
    ("finish", "known"),
    [("length", "length"), ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("eos", "stop")],
)
def test_finish_reason_is_translated_to_the_common_words(
    asking: Asking, finish: str, known: str
) -> None:
    assert asking(ended(finish)).finish_reason == known
    assert asking.told == []


def test_unknown_finish_reason_counts_as_complete_and_is_reported(asking: Asking) -> None:
    assert asking(ended("moonrise")).finish_reason == "moonrise"
    assert "'moonrise', a reason that is not known here" in asking.told[0]


@pytest.mark.parametrize("text", ["", " \n "])
def test_empty_reply_is_accepted_only_if_the_request_allows_it(asking: Asking, text: str) -> None:
    assert asking(ended("stop", text)).fault is Fault.MALFORMED
    assert asking(ended("stop", text), may_be_empty=True).text == text


def test_reply_with_only_a_refusal_is_a_policy_fault(asking: Asking) -> None:
    message = {"content": None, "refusal": "I will not."}
    found = asking(sends(json.dumps({"choices": [{"message": message}]}).encode()))
    assert found.fault is Fault.POLICY
