"""Tool calls on their way in and out: ids, names and texts that every provider takes back.

A call that a model made is sent again with every later prompt. What one server wrote must
therefore be fit for all: a call without an id, or with a name no provider takes, would have each
later request refused. Arguments stay as the model wrote them; whoever runs the call judges them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from evennia_ai.llm.chat import ChatRequest, sent_sha256
from evennia_ai.prompt.messages import ToolCall

NAME_CHARACTERS: Final = 64
UNREADABLE: Final = "unreadable_arguments"
"""The field in which arguments go out that are no JSON object."""

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NOT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_ID_CHARACTERS: Final = 9  # the one length that every provider takes


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call as a server sent it; nothing of it was checked."""

    id: str = ""
    name: str = ""
    arguments: str = ""


def made_calls(written: Iterable[WrittenCall], request: ChatRequest) -> tuple[ToolCall, ...]:
    """The calls of a reply to `request`, in order, each with an id of its own.

    An id that is missing, malformed or used by an earlier call is replaced by one that depends on
    the call and on all that was said before it: the same reply always has the same ids. How many
    there may be was checked where they were read.
    """
    before = _Before(request)
    used = {call.id for message in request.messages for call in message.tool_calls}
    made: list[ToolCall] = []
    for place, call in enumerate(written):
        one = ToolCall(id=call.id, name=_name(call.name), arguments=call.arguments)
        if not _ID.fullmatch(one.id) or one.id in used:
            one = replace(one, id=_stable_id(one, place, before))
        used.add(one.id)
        made.append(one)
    return tuple(made)


def argument_object(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as an object, for servers that read them when they are sent again."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        arguments = None
    return arguments if isinstance(arguments, dict) else {UNREADABLE: call.arguments}


def _name(written: str) -> str:
    return _NOT_IN_NAME.sub("_", written.strip()[:NAME_CHARACTERS]) or "unnamed"


class _Before:
    """The hash of what was said before the calls of a reply, made once and only where needed."""

    def __init__(self, request: ChatRequest) -> None:
        self._request: Final = request

    @cached_property
    def sha256(self) -> str:
        return sent_sha256(self._request.messages)


def _stable_id(call: ToolCall, place: int, before: _Before) -> str:
    said = json.dumps([before.sha256, place, call.id, call.name, call.arguments])
    return sha256(said.encode()).hexdigest()[:_ID_CHARACTERS]


def sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair: a player's client can send one."""
    return text.encode("utf-8", "replace").decode("utf-8")


def sendable_json(value: Any) -> Any:
    """A JSON value with all its texts sendable: a tool's schema may list names of the game."""
    if isinstance(value, str):
        return sendable(value)
    if isinstance(value, Mapping):
        return {sendable(name): sendable_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [sendable_json(one) for one in value]
    return value
