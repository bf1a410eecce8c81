"""Test that fragments of tool calls are joined, however a server cuts them."""

import json
from typing import Any

import pytest

from evennia_ai.services.llm.clients.openai import OpenAIReply
from evennia_ai.services.llm.profiles import Endpoint
from tests.services.llm.builders import a_request, a_tool

ENDPOINT = Endpoint(name="stub", base_url="http://127.0.0.1:1/v1", model="tiny")
TOOLS = (a_tool("look"), a_tool("look_around"), a_tool("pose"))
Piece = tuple[int | None, str | None, str | None, Any]
BOAT, SEA = '{"at":"boat"}', '{"at":"sea"}'


def a_piece(index: int | None, call_id: str | None, name: str | None, arguments: Any) -> Any:
    function = {"name": name, "arguments": arguments}
    piece = {"index": index, "id": call_id}
    known = {key: value for key, value in piece.items() if value is not None}
    return {**known, "function": {k: v for k, v in function.items() if v is not None}}


def read(*deltas: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    """Return the names and arguments of the calls in a stream of deltas."""
    reader = OpenAIReply(a_request(**({"tools": TOOLS} | more)), ENDPOINT)
    for delta in deltas:
        reader.read_event(json.dumps({"choices": [{"delta": delta}]}))
    reader.read_event("[DONE]")
    return [(call.name, call.arguments) for call in reader.reply().tool_calls]


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        ([(0, "a", "look", ""), (0, None, None, '{"at":'), (0, None, None, '"boat"}')], [BOAT]),
        # A new id in each fragment, with or without the name
        ([(0, "a", "look", ""), (0, "b", None, '{"at":'), (0, "c", None, '"boat"}')], [BOAT]),
        ([(0, "a", "look", ""), (0, "b", "look", '{"at":'), (0, "c", "look", '"boat"}')], [BOAT]),
        # Several calls with index 0, or without an index
        ([(0, None, "look", BOAT), (0, None, "look", SEA)], [BOAT, SEA]),
        ([(None, None, "look", BOAT), (None, None, "look", SEA)], [BOAT, SEA]),
        ([(0, None, "look", BOAT), (0, None, "look", BOAT)], [BOAT, BOAT]),
        ([(None, None, "look", BOAT), (None, None, "look", BOAT)], [BOAT, BOAT]),
        ([(0, "a", "look", ""), (0, "", None, BOAT), (0, "b", "look", ""), (0, "", None, SEA)],
         [BOAT, SEA]),
        # An index that counts fragments
        ([(0, "a", "look", ""), (1, None, None, '{"at":'), (2, None, None, '"boat"}')], [BOAT]),
        # The arguments repeated: complete, empty at first, or growing
        ([(0, "a", "look", '{"at":'), (0, None, None, '"boat"}'), (0, "a", "look", BOAT)], [BOAT]),
        ([(0, None, "look", '{"at":"boat"'), (0, None, None, "}"), (0, None, None, BOAT)], [BOAT]),
        ([(0, None, "look", ""), (0, None, None, BOAT), (0, None, "look", BOAT)], [BOAT]),
        ([(0, None, "look", '{"at":'), (0, None, None, '"boat"}'), (0, None, "look", BOAT)],
         [BOAT]),
        ([(0, "a", "look", "{}"), (0, "a", None, BOAT)], [BOAT]),
        ([(0, "a", "look", '{"at":'), (0, "a", "look", BOAT)], [BOAT]),
        # The name repeated, in fragments, or growing
        ([(0, "a", "look", ""), (0, "a", "look", BOAT)], [BOAT]),
        ([(0, None, "look", BOAT), (0, None, "look", "")], [BOAT]),
        ([(0, "a", "lo", ""), (0, None, "ok", BOAT)], [BOAT]),
        ([(0, "a", "lo", ""), (0, "a", "look", BOAT)], [BOAT]),
        # Brackets and quotes inside texts do not end the arguments
        ([(0, None, "look", '{"at":"}\\'), (0, None, "look", '\\"}"}')], ['{"at":"}\\\\"}"}']),
        ([(0, "a", "look", {"at": "boat"})], ['{"at": "boat"}']),
        ([(0, "a", "look", None)], [""]),
    ],
)  # fmt: skip
def test_fragments_of_a_tool_call_are_joined(pieces: list[Piece], calls: list[str]) -> None:
    deltas = [{"tool_calls": [a_piece(*piece)]} for piece in pieces]
    assert read(*deltas) == [("look", arguments) for arguments in calls]


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, None, "look", ""), (0, None, "pose", "")],
        [(0, "a", "look", ""), (0, "b", "look_around", "")],
        [(0, "a", "look", BOAT), (0, "a", "pose", "{}")],
    ],
)
def test_fragment_with_another_tools_name_begins_a_call(pieces: list[Piece]) -> None:
    deltas = [{"tool_calls": [a_piece(*piece)]} for piece in pieces]
    assert [name for name, _ in read(*deltas)] == [piece[2] for piece in pieces]


def test_fragments_without_index_are_told_apart_by_id() -> None:
    pieces = [(None, "a", "look", ""), (None, "b", "pose", "{}"), (None, "a", None, BOAT)]
    deltas = [{"tool_calls": [a_piece(*piece)]} for piece in pieces]
    assert read(*deltas) == [("look", BOAT), ("pose", "{}")]


def test_split_name_is_joined_when_no_tool_is_known() -> None:
    deltas = [{"tool_calls": [a_piece(0, "a", part, "")]} for part in ("lo", "ok")]
    assert read(*deltas, tools=()) == [("look", "")]


def test_old_function_call_format_is_read_from_a_stream() -> None:
    pieces = [{"name": "look", "arguments": ""}, {"arguments": '{"at":'}, {"arguments": '"boat"}'}]
    assert read(*({"function_call": piece} for piece in pieces)) == [("look", BOAT)]


def test_old_function_call_format_is_read_from_a_body() -> None:
    message = {"content": None, "function_call": {"name": "look", "arguments": BOAT}}
    body = {"choices": [{"message": message, "finish_reason": "function_call"}]}
    reply = OpenAIReply(a_request(), ENDPOINT).read_body(json.dumps(body).encode())
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("look", BOAT)]
    assert reply.finish_reason == "tool_calls"


def test_body_has_as_many_calls_as_it_lists() -> None:
    calls = [a_piece(0, None, "look", BOAT), a_piece(0, None, "look", BOAT)]
    body = {"choices": [{"message": {"tool_calls": calls}}]}
    reply = OpenAIReply(a_request(), ENDPOINT).read_body(json.dumps(body).encode())
    assert [call.arguments for call in reply.tool_calls] == [BOAT, BOAT]
