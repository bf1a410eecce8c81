"""Tool calls and their results as messages that every provider takes.

A result stands right behind its call and nowhere else, whatever was cut from the history or came
in between. Where a provider knows no tools, a result is told as a framed user message; nobody's
text can pass for that frame. Pure and deterministic: this runs before the prompt's hash.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from evennia_ai.llm.chat import ChatMessage
from evennia_ai.llm.frames import frame, has_bracket, undone
from evennia_ai.llm.labels import LINE_BREAK
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.messages import ToolCall

RESULT_OPEN: Final = "[Tool result]"
RESULT_CLOSE: Final = "[/Tool result]"
"""Around what a tool returned, where that must travel as a user message."""

NO_RESULT: Final = "(no result)"
"""Stands for the result of a call that has none in the prompt."""

_UNFRAMED: Final = Slot[ChatMessage]("unframed")
_FRAME: Final = frame("tool", "result")  # and "results"

# The number of a call's message, and of the call in it -> what it returned.
_Results = dict[tuple[int, int], ChatMessage]


def has_tool_messages(messages: Sequence[ChatMessage]) -> bool:
    """Whether any of the messages is a call or a result."""
    return any(message.tool_calls or message.role == "tool" for message in messages)


def paired(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with each result right behind its call, in the order of the calls.

    A call without a result gets one that says so. A result whose call is not there is told.
    """
    results, lost = _results(messages)
    if lost:
        messages = [unframed(message) for message in messages]
        results, lost = _results(messages)
    ordered: list[ChatMessage] = []
    for place, message in enumerate(messages):
        if place in lost:
            ordered.append(told(message))
        elif message.role != "tool":
            ordered.append(message)
            for number, call in enumerate(message.tool_calls):
                ordered.append(results.get((place, number)) or _missing(call))
    return ordered


def narrated(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages without calls and results: what was done is told with what came of it."""
    return list(_narrated([unframed(message) for message in messages]))


def told(result: ChatMessage, label: str = "") -> ChatMessage:
    """A result in its frame, as a user message; look-alikes of the frame in it are undone."""
    said = f"{label}: {result.content}" if label else result.content
    told_lines = LINE_BREAK.sub("\n", bare(said))
    return ChatMessage(role="user", content=f"{RESULT_OPEN}\n{told_lines}\n{RESULT_CLOSE}")


def unframed(message: ChatMessage) -> ChatMessage:
    """The message without look-alikes of the frame, in its text and in its speaker's name."""
    if not has_bracket(f"{message.content}{message.name or ''}"):
        return message
    known = message.memo.get(_UNFRAMED)
    if known is not None:
        return known
    name = None if message.name is None else bare(message.name)
    made = replace(message, content=bare(message.content), name=name)
    message.memo[_UNFRAMED] = made
    return made


def bare(text: str) -> str:
    """`text` without look-alikes of the frame."""
    return undone(_FRAME, text)


def _narrated(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    calls: dict[str, ToolCall] = {}
    for message in paired(messages):
        if message.role == "tool":
            call = calls[message.tool_call_id or ""]
            yield told(message, f"{call.name} {call.arguments}")
        elif message.tool_calls:
            calls = {call.id: call for call in message.tool_calls}
            if message.content:
                yield replace(message, tool_calls=())
        else:
            yield message


def _results(messages: Sequence[ChatMessage]) -> tuple[_Results, set[int]]:
    """What each call returned, and the places of results whose call is not there.

    A result belongs to the newest call of its id before it, and a call has one.
    """
    waiting: dict[str, tuple[int, int]] = {}
    results: _Results = {}
    lost: set[int] = set()
    for place, message in enumerate(messages):
        for number, call in enumerate(message.tool_calls):
            waiting[call.id] = (place, number)
        if message.role == "tool":
            key = waiting.pop(message.tool_call_id or "", None)
            if key is None:
                lost.add(place)
            else:
                results[key] = message
    return results, lost


def _missing(call: ToolCall) -> ChatMessage:
    return ChatMessage(role="tool", content=NO_RESULT, tool_call_id=call.id)
