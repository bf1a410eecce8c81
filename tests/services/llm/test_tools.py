"""Test that an answer with tools as text becomes speech and calls."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import ModelRubbish
from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.roles import RoleProfile, adapt_messages
from evennia_ai.services.llm.tools import MOST_ACTS, reply_from, schema_of, tool_text
from tests.services.llm.builders import a_call, a_message, a_request, a_tool

TOOLS = (a_tool("look"), a_tool("give", item={"type": "string"}))


def a_reply(text: str, **more: Any) -> ChatReply:
    return ChatReply(text=text, model="tiny", **more)


def read(reply: ChatReply, said: str = "Hello?") -> ChatReply:
    """Return the reply of a model to which the prompt described the tools."""
    return reply_from(reply, TOOLS, request=a_request(said), as_schema=True)[0]


def apart(text: str) -> tuple[str, list[tuple[str, Any]]]:
    """Return the speech and the calls in a reply's text."""
    reply = read(a_reply(text))
    return reply.text, [(call.name, json.loads(call.arguments)) for call in reply.tool_calls]


def test_answer_with_tools_as_text_is_split_into_words_and_calls() -> None:
    text = '{"say": "Wait.", "acts": [{"tool": "look", "arguments": {"at": "sea"}}]}'
    assert apart(text) == ("Wait.", [("look", {"at": "sea"})])


@pytest.mark.parametrize(
    "text",
    [
        '{"say": "Aye.", "acts": []}',
        '{"say": "Aye.", "acts": null}',
        '{"say": " Aye. "}',
        '```json\n{"say": "Aye."}\n```',
        '<think>{"say": "No."}</think>{"say": "Aye."}',
        'Aye. {"say": "", "acts": []}',
        'My answer: {"say": "Aye."}',
    ],
)
def test_answer_may_have_speech_only(text: str) -> None:
    assert apart(text) == ("Aye.", [])


@pytest.mark.parametrize(
    "text",
    [
        '{"acts": [{"tool": "look"}]}',
        '{"say": "", "acts": [{"tool": "look", "arguments": null}]}',
        '{"tool": "look", "arguments": {}}',
        '<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>',
        '[{"tool": "look", "arguments": {}}]',
        '{"acts": [{"tool": " LOOK ", "arguments": "{}"}]}',
    ],
)
def test_answer_may_have_calls_only(text: str) -> None:
    assert apart(text) == ("", [("look", {})])


def test_adjacent_tool_calls_in_a_text_keep_their_order_and_the_speech() -> None:
    text = 'Wait. {"tool": "look"} {"tool": "give", "arguments": {"item": "rope"}}'
    assert apart(text) == ("Wait.", [("look", {}), ("give", {"item": "rope"})])


@pytest.mark.parametrize("text", ["Aye.", "He drew {} there.", 'He wrote {"a": 1} there.', ""])
def test_prose_answer_is_speech(text: str) -> None:
    reply = a_reply(text)
    assert read(reply) is reply


@pytest.mark.parametrize(
    "text",
    [
        '{"say": "Aye',
        '{"say": "Aye.", "acts": [{"tool": "look", "arguments": {}}',
        'Aye. {"tool": "look", "argu',
        '{"mood": "sad"}',
        "{'say': 'Aye.'}",
        '{"say": 1}',
        '{"say": ["Aye."]}',
        '{"acts": {"tool": "look"}}',
        '{"acts": [{"arguments": {}}]}',
        '{"acts": [{"tool": ""}]}',
        '{"acts": ["look"]}',
        '{"tool": "look"}' * (MOST_ACTS + 1),
        json.dumps({"acts": [{"tool": "look"}] * (MOST_ACTS + 1)}),
    ],
)
def test_half_an_answer_is_an_error(text: str) -> None:
    with pytest.raises(ModelRubbish):
        read(a_reply(text))


def test_problem_of_an_answer_with_tools_is_described() -> None:
    with pytest.raises(ModelRubbish) as caught:
        read(a_reply('{"acts": [{"tool": 1}]}'))
    assert str(caught.value) == (
        "model 'tiny' gave no usable reply: its answer does not have the required form:"
        " acts.0.tool: Input should be a valid string"
    )


@pytest.mark.parametrize("given", ["[1]", '"sea"', "1"])
def test_arguments_of_wrong_types_are_left_to_the_tool(given: str) -> None:
    text = f'{{"tool": "look", "arguments": {given}}}'
    (call,) = read(a_reply(text)).tool_calls
    assert call.arguments == given.strip('"')


def test_call_of_an_unknown_tool_is_kept_for_refusal() -> None:
    assert apart('{"tool": "fly", "arguments": {}}') == ("", [("fly", {})])


def test_call_ids_are_stable_and_unique() -> None:
    reply = a_reply('{"tool": "look"} {"tool": "look"}')
    seen = [
        tuple(call.id for call in read(reply, said).tool_calls)
        for said in ("Hello?", "Hello?", "Well?")
    ]
    assert seen[0] == seen[1]
    assert len({*seen[0], *seen[2]}) == 4


def test_native_calls_and_offline_replies_are_unchanged() -> None:
    text = '{"say": "Aye."}'
    for reply in (a_reply(text, tool_calls=(a_call(),)), a_reply(text, offline=True)):
        assert read(reply) is reply


def test_schema_names_each_tool_with_its_own_arguments() -> None:
    schema = schema_of(TOOLS)
    assert schema.name == "npc_turn"
    acts = schema.schema["properties"]["acts"]
    assert acts["maxItems"] == MOST_ACTS
    forms = [one["properties"] for one in acts["items"]["anyOf"]]
    assert [form["tool"]["enum"] for form in forms] == [["give"], ["look"]]
    assert [list(form["arguments"]["properties"]) for form in forms] == [["item"], ["at"]]
    assert schema.schema["required"] == ["say", "acts"]


def test_schema_does_not_depend_on_the_order_of_tools() -> None:
    assert schema_of(TOOLS) == schema_of(TOOLS[::-1])


def test_schema_without_tools_has_only_speech() -> None:
    assert list(schema_of(()).schema["properties"]) == ["say"]


def test_tool_description_has_its_arguments() -> None:
    assert tool_text(TOOLS).splitlines()[-4:] == [
        "- give: To give.",
        '  arguments: {"item": {"type": "string"}}',
        "- look: To look.",
        '  arguments: {"at": {"type": "string"}}',
    ]


def test_tool_may_have_no_arguments() -> None:
    wait = ToolSpec(name="wait", description="To wait.", parameters={})
    assert tool_text([wait]).endswith("- wait: To wait.\n  arguments: {}")


SAID = st.text(alphabet="abc ,.!?", max_size=20)
ACTS = st.lists(
    st.fixed_dictionaries(
        {
            "tool": st.sampled_from(["look", "give"]),
            "arguments": st.dictionaries(st.text(max_size=5), st.text(max_size=9), max_size=3),
        }
    ),
    max_size=MOST_ACTS,
)


@settings(deadline=None)
@given(SAID, ACTS, st.integers(0, 10_000))
def test_structured_answer_is_read_completely_and_refused_when_its_end_is_missing(
    said: str, acts: list[dict[str, Any]], kept: int
) -> None:
    text = json.dumps({"say": said, "acts": acts}, ensure_ascii=False)
    assert apart(text) == (said.strip(), [(act["tool"], act["arguments"]) for act in acts])
    cut = text[: 1 + kept % (len(text) - 1)]
    with pytest.raises(ModelRubbish):
        read(a_reply(cut))


@settings(deadline=None)
@given(SAID, ACTS)
def test_earlier_acts_are_shown_in_the_answer_form(said: str, acts: list[dict[str, Any]]) -> None:
    text = json.dumps({"say": said, "acts": acts}, ensure_ascii=False)
    reply = read(a_reply(text))
    done = a_message("assistant", reply.text, tool_calls=reply.tool_calls)
    shown = adapt_messages([done], profile=RoleProfile(tools="schema"))[0].content
    if acts:
        assert apart(shown) == apart(text)
