"""Test that tools are sent unchanged, and that received calls can be sent again."""

import json
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelRubbish
from evennia_ai.engine.prompt.messages import ToolCall, ToolSpec
from evennia_ai.services.llm.chat import AnswerSchema, WrittenCall, argument_object, made_calls
from evennia_ai.services.llm.clients.openai import OpenAIReply, body_of
from evennia_ai.services.llm.profiles import Endpoint, Sampling
from tests.services.llm.builders import a_call, a_message, a_request

ENDPOINT = Endpoint(name="stub", base_url="http://127.0.0.1:1/v1", model="tiny")
LOOK = ToolSpec(name="look", description="Look at it.", parameters={"type": "object"})


def sent(**more: Any) -> dict[str, Any]:
    return body_of(a_request(**more), model="tiny", stream=False)


def reply_with(*calls: Any, content: Any = None) -> Any:
    message = {"content": content, "tool_calls": list(calls)}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})
    return OpenAIReply(a_request(), ENDPOINT).read_body(body.encode())


def a_written(name: Any = "look", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | more


# Requests


def test_tools_keep_their_order() -> None:
    give = ToolSpec(name="give", description="Give\ud83d it.", parameters={"type": "object"})
    functions = [tool["function"] for tool in sent(tools=(LOOK, give))["tools"]]
    assert functions == [
        {"name": "look", "description": "Look at it.", "parameters": {"type": "object"}},
        {"name": "give", "description": "Give? it.", "parameters": {"type": "object"}},
    ]


@pytest.mark.req("S0-43")
def test_openai_tools_are_offered_and_never_forced() -> None:
    assert set(sent(tools=(LOOK,))) == {*sent(), "tools"}


def test_lone_surrogate_in_a_schema_becomes_a_question_mark() -> None:
    parameters = {"properties": {"at": {"enum": ["a\ud83d", "b"]}, "n\ud83d": {"minimum": 1}}}
    tool = ToolSpec(name="look", description="", parameters=parameters)
    (sent_tool,) = sent(tools=(tool,))["tools"]
    assert sent_tool["function"]["parameters"] == {
        "properties": {"at": {"enum": ["a?", "b"]}, "n?": {"minimum": 1}}
    }


def test_unset_fields_are_not_sent() -> None:
    assert set(sent()) == {"model", "messages", "max_tokens"}


def test_sampling_fields_are_sent() -> None:
    sampling = Sampling(temperature=0.0, top_p=0.9, stop=("\n",), seed=7)
    body = sent(sampling=sampling)
    chosen = {name: body[name] for name in ("temperature", "top_p", "stop", "seed")}
    assert chosen == {"temperature": 0.0, "top_p": 0.9, "stop": ["\n"], "seed": 7}


def test_extra_never_replaces_a_field_of_the_request() -> None:
    extra = {"min_p": 0.1, "messages": [], "model": "other", "tools": ["mine"]}
    body = sent(sampling=Sampling(extra=extra), tools=(LOOK,))
    assert body == {**sent(tools=(LOOK,)), "min_p": 0.1}


def test_newer_name_of_the_token_limit_replaces_the_older() -> None:
    body = sent(sampling=Sampling(reply_limit="max_completion_tokens"), max_tokens=90)
    assert "max_tokens" not in body
    assert body["max_completion_tokens"] == 90


CLOSED = {
    "type": "object",
    "properties": {"say": {"type": "string"}},
    "required": ["say"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"anyOf": [CLOSED, {"type": "null"}]}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "additionalProperties": True}, False),
        ({**CLOSED, "properties": {"say": {**CLOSED, "required": []}}}, False),
    ],
)
def test_schema_is_strict_if_strict_servers_accept_it(schema: dict[str, Any], strict: bool) -> None:
    assert sent(schema=AnswerSchema(name="act", schema=schema))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "act", "schema": schema, "strict": strict},
    }


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", '"x"', "[" * 100_000])
def test_unreadable_arguments_are_sent_inside_an_object(arguments: str) -> None:
    call = ToolCall(id="c1", name="look", arguments=arguments)
    body = sent(messages=(a_message("assistant", "", tool_calls=(call,)),))
    out = json.loads(body["messages"][0]["tool_calls"][0]["function"]["arguments"])
    assert out == ({"unreadable_arguments": arguments} if arguments else {})


def test_readable_arguments_are_sent_byte_for_byte() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"at":  "Ferry"}')
    body = sent(messages=(a_message("assistant", "", tool_calls=(call,)),))
    assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"at":  "Ferry"}'


# Replies


def test_reply_with_calls_may_have_an_empty_text() -> None:
    reply = reply_with(a_written(), a_written("give", '{"to": "Anna"}', id="c2"))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.tool_calls == (
        ToolCall(id="c1", name="look", arguments="{}"),
        ToolCall(id="c2", name="give", arguments='{"to": "Anna"}'),
    )


def test_reply_may_have_text_and_calls() -> None:
    assert reply_with(a_written(), content="One moment.").text == "One moment."


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("not json", "not json"),
        ('{"to": ', '{"to": '),
        ({"to": "Zoë"}, '{"to": "Zoë"}'),
        (None, ""),
        (7, ""),
    ],
)
def test_arguments_are_passed_on_unchanged(written: Any, read: str) -> None:
    assert reply_with(a_written(arguments=written)).tool_calls[0].arguments == read


@pytest.mark.parametrize(
    ("written", "read"),
    [("look at", "look_at"), ("", "unnamed"), (None, "unnamed"), ("x" * 99, "x" * 64), ("é", "_")],
)
def test_tool_name_is_changed_to_accepted_characters(written: Any, read: str) -> None:
    assert reply_with(a_written(written)).tool_calls[0].name == read


@pytest.mark.parametrize("calls", [None, "look", {"look": 1}, ["look"], [None]])
def test_invalid_calls_are_ignored(calls: Any) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Aye.", "tool_calls": calls}}]})
    reply = OpenAIReply(a_request(), ENDPOINT).read_body(body.encode())
    assert reply.tool_calls == ()


def test_reply_without_text_and_calls_is_an_error() -> None:
    with pytest.raises(ModelRubbish, match="text is empty"):
        reply_with()


def test_refusal_in_a_reply_is_reported() -> None:
    body = b'{"choices": [{"message": {"content": null, "refusal": "I will not."}}]}'
    with pytest.raises(ModelRubbish, match="the model refused: I will not"):
        OpenAIReply(a_request(), ENDPOINT).read_body(body)


LOOKING = WrittenCall(name="look", arguments="{}")


def ids_of(*written: WrittenCall, **more: Any) -> list[str]:
    return [call.id for call in made_calls(written, a_request(**more))]


def test_missing_call_id_is_stable_and_unique() -> None:
    first, second = ids_of(LOOKING, LOOKING)
    assert [first, second] == ids_of(LOOKING, LOOKING)
    assert first != second
    assert len(first) == 9
    assert first.isalnum()


def test_missing_call_id_depends_on_the_earlier_messages() -> None:
    assert ids_of(LOOKING) != ids_of(LOOKING, question="Another?")


@pytest.mark.parametrize("bad", ["with space", "x" * 65, "é", "a\n"])
def test_malformed_call_id_is_replaced(bad: str) -> None:
    (made,) = ids_of(WrittenCall(id=bad, name="look", arguments="{}"))
    assert made != bad
    assert len(made) == 9


def test_repeated_call_id_is_replaced() -> None:
    before = (a_message("assistant", "", tool_calls=(a_call("c1"),)),)
    call = WrittenCall(id="c1", name="look", arguments="{}")
    assert ids_of(call) == ["c1"]
    assert ids_of(call, messages=before) != ["c1"]
    first, second = ids_of(call, call)
    assert first == "c1" != second


def test_arguments_are_read_as_an_object() -> None:
    assert argument_object(ToolCall(id="1", name="x", arguments='{"a": 1}')) == {"a": 1}
    assert argument_object(ToolCall(id="1", name="x", arguments="")) == {}
