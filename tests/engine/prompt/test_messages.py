"""Messages: the bytes that a prompt's hash covers, their tokens, and the origins of their parts."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.prompt.messages import Message, Part, ToolCall, messages_sha256, said
from evennia_ai.engine.prompt.tokens import ratio_counter

CALL = ToolCall(id="c1", name="look", arguments="{}")
MESSAGE = said("user", "Hello.", name="Anna")


@pytest.mark.parametrize(
    "change",
    [
        {"role": "assistant"},
        {"content": "Hello!"},
        {"name": None},
        {"name": "Ben"},
        {"tool_calls": (CALL,)},
        {"tool_call_id": "c1"},
    ],
)
def test_prompt_hash_covers_everything_that_a_model_sees(change: dict[str, object]) -> None:
    assert messages_sha256([replace(MESSAGE, **change, memo={})]) != messages_sha256([MESSAGE])


@pytest.mark.parametrize(
    "change",
    [{"block": "event"}, {"injected": True}, {"origin": "elsewhere"}, {"revision": 3}],
)
def test_prompt_hash_covers_nothing_that_a_model_does_not_see(change: dict[str, object]) -> None:
    assert messages_sha256([replace(MESSAGE, **change, memo={})]) == messages_sha256([MESSAGE])


def test_message_bytes_are_canonical_json_even_for_invalid_unicode() -> None:
    assert MESSAGE.wire() == b'{"content":"Hello.","name":"Anna","role":"user"}'
    half = said("user", "\ud800 ü").wire()
    assert json.loads(half.decode("utf-8", "surrogatepass"))["content"] == "\ud800 ü"


def test_message_bytes_equal_json_with_sorted_keys() -> None:
    full = Message(
        role="assistant",
        content='She said "no".\n\u2028',
        name="Oren",
        tool_calls=(CALL,),
        tool_call_id="c0",
    )
    told = {
        "role": "assistant",
        "content": full.content,
        "name": "Oren",
        "tool_calls": [["c1", "look", "{}"]],
        "tool_call_id": "c0",
    }
    text = json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    assert full.wire() == text.encode()


def test_message_tokens_include_text_name_and_tool_calls() -> None:
    letters = ratio_counter(1)
    assert said("user", "12345").tokens(letters) == 4 + 5
    assert said("user", "12345", name="Anna").tokens(letters) == 4 + 5 + 4 + 1
    calling = Message(role="assistant", content="", tool_calls=(CALL, CALL))
    assert calling.tokens(letters) == 4 + 2 * 2


def test_message_with_one_origin_has_one_part() -> None:
    assert MESSAGE.parts == (Part(origin="history", start=0, end=6),)
    assert Message(role="user", content="x", block="tool").parts[0].origin == "tool"
