"""Tools go out as they were given; calls come in fit to be sent again, whoever wrote them."""

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
    return OpenAIReply(a_request(), ENDPOINT).whole(body.encode())


def a_written(name: Any = "look", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    } | more


# Out


def test_tools_go_out_in_the_order_given() -> None:
    give = ToolSpec(name="give", description="Give\ud83d it.", parameters={"type": "object"})
    functions = [tool["function"] for tool in sent(tools=(LOOK, give))["tools"]]
    assert functions == [
        {"name": "look", "description": "Look at it.", "parameters": {"type": "object"}},
        {"name": "give", "description": "Give? it.", "parameters": {"type": "object"}},
    ]


@pytest.mark.req("S0-43")
def test_the_model_is_offered_tools_and_never_made_to_call_one() -> None:
    assert set(sent(tools=(LOOK,))) == {*sent(), "tools"}


def test_a_schema_with_half_a_surrogate_pair_goes_out_with_a_question_mark() -> None:
    parameters = {"properties": {"at": {"enum": ["a\ud83d", "b"]}, "n\ud83d": {"minimum": 1}}}
    tool = ToolSpec(name="look", description="", parameters=parameters)
    (sent_tool,) = sent(tools=(tool,))["tools"]
    assert sent_tool["function"]["parameters"] == {
        "properties": {"at": {"enum": ["a?", "b"]}, "n?": {"minimum": 1}}
    }


def test_what_is_not_set_is_not_sent() -> None:
    assert set(sent()) == {"model", "messages", "max_tokens"}


def test_the_sampling_goes_out() -> None:
    sampling = Sampling(temperature=0.0, top_p=0.9, stop=("\n",), seed=7)
    body = sent(sampling=sampling)
    chosen = {name: body[name] for name in ("temperature", "top_p", "stop", "seed")}
    assert chosen == {"temperature": 0.0, "top_p": 0.9, "stop": ["\n"], "seed": 7}


def test_further_fields_replace_nothing_of_the_request() -> None:
    extra = {"min_p": 0.1, "messages": [], "model": "other", "tools": ["mine"]}
    body = sent(sampling=Sampling(extra=extra), tools=(LOOK,))
    assert body == {**sent(tools=(LOOK,)), "min_p": 0.1}


def test_the_newer_name_of_the_token_limit_replaces_the_older() -> None:
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
def test_a_schema_is_strict_where_strict_servers_would_take_it(
    schema: dict[str, Any], strict: bool
) -> None:
    assert sent(schema=AnswerSchema(name="act", schema=schema))["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "act", "schema": schema, "strict": strict},
    }


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "null", '"x"', "[" * 100_000])
def test_arguments_that_no_server_can_read_go_out_as_an_object(arguments: str) -> None:
    call = ToolCall(id="c1", name="look", arguments=arguments)
    body = sent(messages=(a_message("assistant", "", tool_calls=(call,)),))
    out = json.loads(body["messages"][0]["tool_calls"][0]["function"]["arguments"])
    assert out == ({"unreadable_arguments": arguments} if arguments else {})


def test_readable_arguments_go_out_byte_for_byte() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"at":  "Ferry"}')
    body = sent(messages=(a_message("assistant", "", tool_calls=(call,)),))
    assert body["messages"][0]["tool_calls"][0]["function"]["arguments"] == '{"at":  "Ferry"}'


# In


def test_calls_come_with_an_empty_text() -> None:
    reply = reply_with(a_written(), a_written("give", '{"to": "Anna"}', id="c2"))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert reply.tool_calls == (
        ToolCall(id="c1", name="look", arguments="{}"),
        ToolCall(id="c2", name="give", arguments='{"to": "Anna"}'),
    )


def test_a_text_may_stand_beside_a_call() -> None:
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
def test_arguments_are_passed_on_as_they_came(written: Any, read: str) -> None:
    assert reply_with(a_written(arguments=written)).tool_calls[0].arguments == read


@pytest.mark.parametrize(
    ("written", "read"),
    [("look at", "look_at"), ("", "unnamed"), (None, "unnamed"), ("x" * 99, "x" * 64), ("é", "_")],
)
def test_a_name_is_made_one_that_every_provider_takes(written: Any, read: str) -> None:
    assert reply_with(a_written(written)).tool_calls[0].name == read


@pytest.mark.parametrize("calls", [None, "look", {"look": 1}, ["look"], [None]])
def test_calls_that_are_none_are_not_there(calls: Any) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Aye.", "tool_calls": calls}}]})
    reply = OpenAIReply(a_request(), ENDPOINT).whole(body.encode())
    assert reply.tool_calls == ()


def test_nothing_said_and_nothing_done_is_rubbish() -> None:
    with pytest.raises(ModelRubbish, match="text is empty"):
        reply_with()


def test_a_refusal_is_told() -> None:
    body = b'{"choices": [{"message": {"content": null, "refusal": "I will not."}}]}'
    with pytest.raises(ModelRubbish, match="the model refused: I will not"):
        OpenAIReply(a_request(), ENDPOINT).whole(body)


LOOKING = WrittenCall(name="look", arguments="{}")


def ids_of(*written: WrittenCall, **more: Any) -> list[str]:
    return [call.id for call in made_calls(written, a_request(**more))]


def test_a_missing_id_is_the_same_each_time_and_another_for_each_call() -> None:
    first, second = ids_of(LOOKING, LOOKING)
    assert [first, second] == ids_of(LOOKING, LOOKING)
    assert first != second
    assert len(first) == 9
    assert first.isalnum()


def test_a_missing_id_depends_on_what_was_said_before() -> None:
    assert ids_of(LOOKING) != ids_of(LOOKING, question="Another?")


@pytest.mark.parametrize("bad", ["with space", "x" * 65, "é", "a\n"])
def test_a_malformed_id_is_replaced(bad: str) -> None:
    (made,) = ids_of(WrittenCall(id=bad, name="look", arguments="{}"))
    assert made != bad
    assert len(made) == 9


def test_an_id_that_was_used_before_is_replaced() -> None:
    before = (a_message("assistant", "", tool_calls=(a_call("c1"),)),)
    call = WrittenCall(id="c1", name="look", arguments="{}")
    assert ids_of(call) == ["c1"]
    assert ids_of(call, messages=before) != ["c1"]
    first, second = ids_of(call, call)
    assert first == "c1" != second


def test_arguments_are_read_as_an_object() -> None:
    assert argument_object(ToolCall(id="1", name="x", arguments='{"a": 1}')) == {"a": 1}
    assert argument_object(ToolCall(id="1", name="x", arguments="")) == {}
