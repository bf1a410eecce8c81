"""Test that calls written as text are run if their tool is offered, and never spoken."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.reasoning import without_thoughts
from evennia_ai.services.llm.speech import SpokenStart, spoken_text
from evennia_ai.services.llm.text_calls import MOST_BEGINNINGS, read_calls, without_calls
from evennia_ai.services.llm.tools import reply_from
from tests.effort import little_work
from tests.properties import up_to
from tests.services.llm.builders import a_call, a_request, a_tool

TOOLS = (a_tool("look"), a_tool("give_item", item={"type": "string"}, to={"type": "string"}))
OFFERED = {tool.name: tuple(tool.parameters["properties"]) for tool in TOOLS}
BOAT = {"at": "boat"}
NAMED = '{"name": "look", "arguments": {"at": "boat"}}'

FORMS = {
    "Qwen": f"<tool_call>\n{NAMED}\n</tool_call>",
    "Qwen, without an end": f"<tool_call>\n{NAMED}",
    "Qwen, arguments as text": (
        '<tool_call>{"name": "look", "arguments": "{\\"at\\": \\"boat\\"}"}</tool_call>'
    ),
    "Qwen, as in Python": "<tool_call>{'name': 'look', 'arguments': {'at': 'boat'}}</tool_call>",
    "Qwen 3 Coder": (
        "<tool_call>\n<function=look>\n<parameter=at>\nboat\n</parameter>\n</function>\n</tool_call>"
    ),
    "Qwen 3 Coder, bare": "<function=look>\n<parameter=at>\nboat\n</parameter>\n</function>",
    "Seed": (
        "<seed:tool_call><function=look><parameter=at>boat</parameter></function></seed:tool_call>"
    ),
    "GLM": "<tool_call>look\n<arg_key>at</arg_key>\n<arg_value>boat</arg_value>\n</tool_call>",
    "LongCat": (
        "<longcat_tool_call>look\n<longcat_arg_key>at</longcat_arg_key>\n"
        "<longcat_arg_value>boat</longcat_arg_value>\n</longcat_tool_call>"
    ),
    "Mistral of old": f"[TOOL_CALLS][{NAMED}]",
    "Mistral": '[TOOL_CALLS]look[ARGS]{"at": "boat"}',
    "Mistral with an id": '[TOOL_CALLS]look[CALL_ID]a1b2c3d4e[ARGS]{"at": "boat"}</s>',
    "Llama": '<|python_tag|>{"name": "look", "parameters": {"at": "boat"}}<|eom_id|>',
    "Llama, a function": '<function=look>{"at": "boat"}</function>',
    "Llama, bare": '{"name": "look", "parameters": {"at": "boat"}}',
    "Llama, with a type": '{"type": "function", "name": "look", "parameters": {"at": "boat"}}',
    "Llama 4": '[look(at="boat")]',
    "Llama 4, marked": "<|python_tag|>[look(at='boat')]",
    "a list of calls": f'{{"tool_calls": [{NAMED}]}}',
    "the form of the API": f'[{{"id": "1", "type": "function", "function": {NAMED}}}]',
    "tool and arguments": '{"tool": "look", "at": "boat"}',
    "arguments first": '{"arguments": {"at": "boat"}, "name": "look"}',
    "fenced": '```json\n{"tool": "look", "at": "boat"}\n```',
    "fenced without a word": f"```\n{NAMED}\n```",
    "Gemma": "```tool_code\nlook(at='boat')\n```",
    "Gemma, printed": "```tool_code\nprint(default_api.look(at='boat'))\n```",
    "Gemma, without names": "```tool_code\nlook('boat')\n```",
    "Gemma, bare": "call:look{at:boat}",
    "FunctionGemma": "<start_function_call>call:look{at:<escape>boat<escape>}<end_function_call>",
    "Gemma 4": '<|tool_call>call:look{at:<|"|>boat<|"|>}<tool_call|>',
    "Python in a fence": "```python\nlook(at='boat')\n```",
    "a line of Python": "look(at = 'boat')",
    "DeepSeek 3": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n"
        '```json\n{"at": "boat"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "DeepSeek 3.1": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>"
        '{"at": "boat"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>'
    ),
    "DeepSeek 3.2": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="look">\n'
        '<｜DSML｜parameter name="at" string="true">boat</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "MiniMax": (
        '<minimax:tool_call>\n<invoke name="look">\n<parameter name="at">boat</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    ),
    "tags of Claude": (
        '<function_calls>\n<invoke name="look">\n<parameter name="at">boat</parameter>\n'
        "</invoke>\n</function_calls>"
    ),
    "tags with a prefix": (
        '<x:function_calls><x:invoke name="look"><x:parameter name="at">boat</x:parameter>'
        "</x:invoke></x:function_calls>"
    ),
    "Kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0"
        '<|tool_call_argument_begin|>{"at": "boat"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "Granite": f"<|tool_call|>[{NAMED}]",
    "Phi": f"<|tool_call|>[{NAMED}]<|/tool_call|>",
    "Command R": (
        '<|START_ACTION|>[{"tool_name": "look", "parameters": {"at": "boat"}}]<|END_ACTION|>'
    ),
    "InternLM": (
        '<|action_start|><|plugin|>{"name": "look", "parameters": {"at": "boat"}}<|action_end|>'
    ),
    "Nemotron": f"<TOOLCALL>[{NAMED}]</TOOLCALL>",
    "Apertus": '<|tools_prefix|>[{"look": {"at": "boat"}}]<|tools_suffix|>',
    "Hunyuan": (
        '<tool_calls><tool_call>look\n```json\n{"at": "boat"}\n```</tool_call></tool_calls>'
    ),
    "Hunyuan 2": (
        "<tool_calls><tool_call>look<tool_sep>\n<arg_key>at</arg_key><arg_value>boat</arg_value>"
        "</tool_call></tool_calls>"
    ),
    "LFM": '<|tool_call_start|>[look(at="boat")]<|tool_call_end|>',
    "Glaive": f"<functioncall>{NAMED}</functioncall>",
    "Kimi, without marks": 'functions.look:0<|tool_call_argument_begin|>{"at": "boat"}',
    "marks in a fence": f"```xml\n<tool_call>{NAMED}</tool_call>\n```",
    "Gemini, printed": "print(default_api.look(at='boat'))",
}


def read(text: str, **more: Any) -> tuple[list[tuple[str, Any]], str, tuple[str, ...]]:
    """Return the calls in a text, the text around them, and what was dropped."""
    found = read_calls(without_thoughts(text), OFFERED, **more)
    calls = [(call.name, json.loads(call.arguments)) for call in found.calls]
    return calls, spoken(found.rest), found.dropped


def spoken(text: str) -> str:
    return spoken_text(text, own_names=["Oren"])


def said_early(text: str) -> str:
    start = SpokenStart(["Oren"], early=True)
    return "".join(sentence for letter in text for sentence in start.feed(letter))


def apart(text: str, *, as_schema: bool = False, **more: Any) -> tuple[ChatReply, tuple[str, ...]]:
    reply = ChatReply(text=text, model="tiny", **more)
    return reply_from(reply, TOOLS, request=a_request(), as_schema=as_schema)


PLAIN = ("Apertus", "a line of Python", "Python in a fence")
"""Texts that are calls only if their name is that of an offered tool."""


@pytest.mark.parametrize("form", FORMS)
def test_textual_call_of_every_model_is_read(form: str) -> None:
    assert read(FORMS[form]) == ([("look", BOAT)], "", ())


@pytest.mark.parametrize("form", FORMS)
def test_text_around_a_textual_call_is_said(form: str) -> None:
    text = f"Wait here.\n{FORMS[form]}"
    assert read(text) == ([("look", BOAT)], "Wait here.", ())
    if form != "Qwen, without an end":
        assert read(f"{text}\nI look.")[:2] == ([("look", BOAT)], "Wait here.\nI look.")


@pytest.mark.parametrize(
    "text",
    [
        f"functools[{NAMED}]",
        f'Action: ```json\n[{{"tool_name": "look", "parameters": {json.dumps(BOAT)}}}]\n```',
        f"Tool call:\n{NAMED}",
        f"tool: {NAMED}",
    ],
)
def test_label_before_a_textual_call_is_not_said(text: str) -> None:
    assert read(f"Wait here.\n{text}\nI look.") == ([("look", BOAT)], "Wait here.\nI look.", ())


@pytest.mark.parametrize("as_schema", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_textual_call_works_with_and_without_tool_support(form: str, as_schema: bool) -> None:
    reply, dropped = apart(f"Wait here.\n{FORMS[form]}", as_schema=as_schema)
    (call,) = reply.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("look", BOAT)
    assert (spoken(reply.text), dropped) == ("Wait here.", ())


@pytest.mark.parametrize("form", [form for form in FORMS if form not in PLAIN])
def test_textual_call_is_not_said_when_no_tool_is_offered(form: str) -> None:
    assert spoken(FORMS[form]) == ""
    assert spoken(f"Wait here.\n{FORMS[form]}") == "Wait here."


@pytest.mark.parametrize("form", FORMS)
def test_textual_call_is_not_said_while_it_is_written(form: str) -> None:
    assert said_early(f"I look. Aye\n{FORMS[form]} Well. Now") == "I look."
    assert said_early(FORMS[form]) == ""


BEFORE_A_CALL = tuple(
    word[:end]
    for word in ("call:", "look", "functions", "print", "default_api")
    for end in range(1, len(word) + 1)
)
"""Texts that are prose unless a call follows them."""


@pytest.mark.parametrize("form", FORMS)
def test_tool_call_in_text_is_neither_said_nor_run_when_its_end_is_missing(form: str) -> None:
    for end in range(2, len(FORMS[form])):
        text = f"Wait here.\n{FORMS[form][:end]}"
        calls, said, _ = read(text, is_cut=True)
        assert calls in ([], [("look", BOAT)])
        assert said.removeprefix("Wait here.").strip() in ("", *BEFORE_A_CALL)


@pytest.mark.parametrize("form", FORMS)
def test_textual_call_of_an_unoffered_tool_is_dropped_and_named(form: str) -> None:
    if form in PLAIN:
        return  # Only the name shows that it is a call.
    reply, dropped = apart(f"Wait here.\n{FORMS[form].replace('look', 'dance')}")
    assert (reply.tool_calls, spoken(reply.text)) == ((), "Wait here.")
    assert [name.rpartition(".")[2] for name in dropped] == ["dance"]


@pytest.mark.parametrize(
    "text",
    [
        '<|channel|>commentary to=functions.look json<|message|>{"at": "boat"}<|call|>',
        (
            "<|channel|>analysis<|message|>He asks.<|end|><|start|>assistant to=functions.look"
            '<|channel|>commentary <|constrain|>json<|message|>{"at": "boat"}<|call|>'
        ),
    ],
)
@pytest.mark.parametrize("as_schema", [True, False])
def test_textual_call_in_a_channel_is_read_and_not_said(text: str, as_schema: bool) -> None:
    reply, dropped = apart(text, as_schema=as_schema)
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        ("look", BOAT)
    ]
    assert (spoken(reply.text), spoken(text), dropped) == ("", "", ())
    assert apart(text[:-12])[0].tool_calls == ()
    assert apart(text.replace("look", "dance"))[1] == ("functions.dance",)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (f"<tool_call>{NAMED}</tool_call>\n<tool_call>{NAMED}</tool_call>", 2),
        (f"[TOOL_CALLS][{NAMED}, {NAMED}]", 2),
        ('[TOOL_CALLS]look[ARGS]{"at": "boat"}[TOOL_CALLS]look[ARGS]{"at": "boat"}', 2),
        (f"<|python_tag|>{NAMED}; {NAMED}", 2),
        ("[look(at='boat'), look(at='boat')]", 2),
        ("```tool_code\nlook(at='boat')\nlook(at='boat')\n```", 2),
        (f"{NAMED}\n{NAMED}", 2),
        (FORMS["Kimi"].replace("<|tool_calls_section_end|>", "") + FORMS["Kimi"], 2),
        (FORMS["DeepSeek 3"].replace("<｜tool▁calls▁end｜>", "") + FORMS["DeepSeek 3.1"], 2),
        (FORMS["tags of Claude"].replace("</function_calls>", FORMS["tags of Claude"]), 2),
    ],
)
def test_several_textual_calls_are_read_in_order(text: str, calls: int) -> None:
    assert read(text) == ([("look", BOAT)] * calls, "", ())


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("<tool_call>look</tool_call>", [("look", {})]),
        ("<function=look></function>", [("look", {})]),
        ("[look()]", [("look", {})]),
        ('<tool_call>{"name": "look"}</tool_call>', [("look", {})]),
        ('{"name": "LOOK", "arguments": null}', [("look", {})]),
        ("[give_item('rope', to='Anna')]", [("give_item", {"item": "rope", "to": "Anna"})]),
        (
            "<function=give_item><parameter=item>3</parameter>\n<parameter=to>\nA\nB\n</parameter>",
            [("give_item", {"item": 3, "to": "A\nB"})],
        ),
        (
            'call:give_item{item:"a, }b",to:Anna Bell}',
            [("give_item", {"item": "a, }b", "to": "Anna Bell"})],
        ),
        (
            "[give_item(item={'a': [1, true, None]}, to='x)]')]",
            [("give_item", {"item": {"a": [1, True, None]}, "to": "x)]"})],
        ),
    ],
)
def test_textual_arguments_of_every_kind_are_read(text: str, calls: Any) -> None:
    assert read(text) == (calls, "", ())


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>\n{name: look}\n</tool_call> Wait here.",
        "<tool_call></tool_call>Wait here.",
        "<function=look>{at: boat}</function>Wait here.",
        "Wait here. [look(at=boat)]",
        "Wait here. [look(at=__import__('os').getcwd())]",
        "Wait here. call:look{at}",
        'Wait here. {"name": "look", "arguments": {at: 1}}',
        "Wait here.\n```tool_code\nlook(at=open('x'))\n```",
        f"<think><tool_call>{NAMED}</tool_call></think>Wait here.",
        "Wait here.</tool_call></arg_value></invoke>",
        "Wait here.<tool_response>I see a boat.</tool_response>",
    ],
)
def test_unreadable_textual_call_is_neither_said_nor_run(text: str) -> None:
    calls, said, _ = read(text)
    assert (calls, said) == ([], "Wait here.")
    assert spoken(text) == "Wait here."


@pytest.mark.parametrize(
    "text",
    [
        'He wrote {"a": 1} there.',
        'They say {"name": "Anna"} there.',
        "[sighs] Well, look (there).",
        "Call: look there.",
        "This is my call:",
        "I call: {nothing}.",
        "Look (at the boat)!",
        "The name(s) of the ships.",
        "[Anna (the captain) nods]",
        "a < b and b > c",
    ],
)
def test_prose_is_said_unchanged(text: str) -> None:
    assert spoken(text) == text
    assert read(text) == ([], text, ())


def test_reply_with_native_calls_is_unchanged() -> None:
    reply = ChatReply(text=FORMS["Qwen"], model="tiny", tool_calls=(a_call(),))
    assert reply_from(reply, TOOLS, request=a_request(), as_schema=False) == (reply, ())


def test_textual_calls_have_stable_ids() -> None:
    first, again = (apart(FORMS["Qwen"] * 2)[0].tool_calls for _ in range(2))
    assert first == again
    assert len({call.id for call in first}) == 2


def test_schema_answer_may_be_next_to_a_textual_call() -> None:
    reply, _ = apart('{"say": "Wait."}' + FORMS["Mistral"], as_schema=True)
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("Wait.", ["look"])


def test_speech_in_another_member_than_say_is_left_for_unwrapping() -> None:
    reply, _ = apart('{"speech": "Wait."}', as_schema=True)
    assert spoken(reply.text) == "Wait."


def test_python_call_with_named_arguments_may_be_followed_by_speech() -> None:
    reply, _ = apart('look(at="boat") Wait here.')
    assert [(call.name, json.loads(call.arguments)) for call in reply.tool_calls] == [
        ("look", BOAT)
    ]
    assert reply.text == "Wait here."
    assert spoken('fly(to="moon") Wait here.') == "Wait here."


def test_arguments_next_to_the_name_of_an_act_are_read() -> None:
    reply, _ = apart('{"acts": [{"tool": "look", "at": "boat"}]}', as_schema=True)
    assert [json.loads(call.arguments) for call in reply.tool_calls] == [BOAT]


def test_textual_calls_are_limited_in_number() -> None:
    found = read_calls(f"<tool_call>{NAMED}</tool_call>" * 200 + "More.", OFFERED)
    assert (len(found.calls), found.rest.strip()) == (MOST_BEGINNINGS, "")


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<tool_call>",
            "</tool_call>",
            "[TOOL_CALLS]",
            "<arg_key>",
            "<function=look>",
            "[look(a=",
        ),
        *(
            '{"name":',
            '{"name": 1}',
            "{'name':",
            '<tool_call>{"a',
            "call:look{a:<escape>",
            "call:l{",
        ),
        *("look(at=\n", "[look(at=(", "```tool_code\n", "```json\n{", '<tool_call>{"name": "x"}'),
        *("<parameter=a>", "<|tool_call|>x", "<tool_call>[[[", "{'name': {", "[ {", "call:a{b:c,"),
        *('functools[{"name":', "Action: ", "print(default_api.a(", "functions.a:1<", "functions."),
        *("default_api.", 'Action: ```json\n{"tool": "look"}', "<functioncall>", "<tool_sep>"),
        *("<tool_call>look(at='", "```", '<tool_call>{"a\\', "[look(at='b')", "<"),
    ],
)
def test_hostile_textual_calls_cost_linear_time(unit: str) -> None:
    text = unit * (90_000 // len(unit))
    with little_work():
        read_calls(text, OFFERED)
        without_calls(text)


PIECES = st.sampled_from(
    [
        *FORMS.values(),
        *("<tool_call>", "</tool_call>", '{"name": ', '"look"', "{", "}", "[", "]", "(", ")"),
        *("look(", "at='b'", "call:look{", "```json\n", "```\n", "<arg_key>", "[TOOL_CALLS]"),
        *("Aye. ", "Sit down. ", "\n", " ", "No", "<think>", "</think>", "Oren: ", "<", "`"),
    ]
)


@settings(deadline=None, max_examples=up_to(300))
@given(st.lists(PIECES, max_size=8).map("".join), st.integers(1, 30), st.booleans())
def test_early_speech_is_the_start_of_speech_with_textual_calls(
    text: str, size: int, with_tools: bool
) -> None:
    start = SpokenStart(["Oren"], early=True)
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    early = "".join(sentence for piece in pieces for sentence in start.feed(piece))
    reply, _ = reply_from(
        ChatReply(text=text, model="tiny"),
        TOOLS if with_tools else (),
        request=a_request(),
        as_schema=False,
        late_end="hides_nothing",
    )
    assert start.whole(reply.text).startswith(early)
    assert start.whole(text).startswith(early)
