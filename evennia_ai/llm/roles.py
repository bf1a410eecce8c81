"""Fits a prompt's messages to what a provider takes: the last step before the hash and the call.

Pure, deterministic, applied once. Tool calls and results, speaker labels, merging neighbours of
one role, one system message only, strict alternation. Nobody's text can pass for what this module
writes: neither for another speaker's line nor for the frame that stands for a system message.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from evennia_ai.llm.chat import ChatMessage, ToolSpec
from evennia_ai.llm.schema_tools import with_tools_as_text
from evennia_ai.llm.tool_messages import has_tool_messages, narrated, paired
from evennia_ai.prompt.messages import Role

FRAME_OPEN: Final = "[Game instruction]"
FRAME_CLOSE: Final = "[/Game instruction]"
"""Around a system message that must travel as a user message."""

FILLERS: Final[dict[Role, str]] = {"user": "(listens)", "assistant": "(is silent)"}
"""Said for the one whose turn is missing where a provider wants strict alternation."""

NAME_LIMIT: Final = 64

_FRAME: Final = re.compile(r"\[([\s/]*game\s+instruction\s*)\]", re.IGNORECASE)
_NOT_IN_NAME: Final = re.compile(r"[\s<|\\/>\x00-\x1f\x7f]+")
_LINE_BREAK: Final = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")

_Step = Callable[[ChatMessage], ChatMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleProfile:
    """What a provider's messages must look like.

    `speakers`: a user message's speaker goes before the text (`label`: "Anna: "), into the
    `name` field (`name`), or is left out (`none`). A message merged of several speakers is
    always labelled. `one_system`: a later system message becomes a framed user message.
    `alternate` includes both merging and `one_system`. `tools`: calls and results are messages of
    their own (`native`), or text, the list of tools among it (`schema`), or are only told (`none`).
    """

    speakers: Literal["label", "name", "none"] = "label"
    merge: bool = False
    one_system: bool = False
    alternate: bool = False
    tools: Literal["native", "schema", "none"] = "native"


OPEN: Final = RoleProfile()
"""Takes any order of roles: the servers of today."""

STRICT: Final = RoleProfile(merge=True, one_system=True, alternate=True)
"""One system message, then user and assistant in turn."""


def adapt(
    messages: Iterable[ChatMessage], *, profile: RoleProfile, tools: Sequence[ToolSpec] = ()
) -> tuple[ChatMessage, ...]:
    """The messages as `profile` wants them; the results of tools stand right behind their calls.

    `tools` are those the model may use now; they become text only where the profile says so.
    """
    adapted = _with_tools(tuple(messages), tools, profile=profile)
    if profile.one_system or profile.alternate:
        adapted = _one_system(adapted)
    spoken = _spoken_by(profile)
    adapted = [_remembered(spoken, message) for message in adapted]
    if profile.merge or profile.alternate:
        adapted = _merged(adapted)
    if profile.alternate:
        adapted = list(_alternating(adapted))
    return tuple(adapted)


def _with_tools(
    messages: Sequence[ChatMessage], tools: Sequence[ToolSpec], *, profile: RoleProfile
) -> Sequence[ChatMessage]:
    if profile.tools == "schema":
        return with_tools_as_text(messages, tools)
    if profile.tools == "none":
        return narrated(messages)
    return paired(messages) if has_tool_messages(messages) else messages


def _spoken_by(profile: RoleProfile) -> _Step:
    if profile.speakers == "none":
        return _nameless
    merging = profile.merge or profile.alternate
    return _named if profile.speakers == "name" and not merging else _labelled


def _remembered(step: _Step, message: ChatMessage) -> ChatMessage:
    """What a step makes of a message, worked out once: it goes out with every later prompt."""
    known = message.memo.get(step)
    if isinstance(known, ChatMessage):
        return known
    made = step(message)
    message.memo[step] = made
    return made


def _nameless(message: ChatMessage) -> ChatMessage:
    return replace(message, name=None)


def _named(message: ChatMessage) -> ChatMessage:
    """With a name that every provider takes, on the roles that may have one."""
    if message.name is None or message.role not in ("user", "assistant"):
        return _nameless(message)
    name = _NOT_IN_NAME.sub("_", message.name.strip())[:NAME_LIMIT]
    return replace(message, name=name or None)


def _labelled(message: ChatMessage) -> ChatMessage:
    """With "Anna: " before the text; the model's own lines stay bare, or it would copy the label.

    A further line of the text is indented: only the label's own line starts with a name.
    """
    name = " ".join((message.name or "").split())[:NAME_LIMIT]
    if message.role != "user" or not name:
        return _nameless(message)
    said = _LINE_BREAK.sub("\n    ", message.content)
    return replace(message, name=None, content=f"{name}: {said}")


def _one_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The leading system messages as one; every later one framed, as a user message."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    head = _merged([_nameless(message) for message in messages[:leading]])
    return [*head, *(_remembered(_framed, message) for message in messages[leading:])]


def _framed(message: ChatMessage) -> ChatMessage:
    """A system message in its frame; look-alikes of the frame in any text or name are undone."""
    if message.role != "system" and "[" not in f"{message.content}{message.name}":
        return message
    content = _FRAME.sub(r"(\1)", message.content)
    if message.role == "system":
        return ChatMessage(role="user", content=f"{FRAME_OPEN}\n{content}\n{FRAME_CLOSE}")
    name = None if message.name is None else _FRAME.sub(r"(\1)", message.name)
    return replace(message, content=content, name=name)


def _merged(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Neighbours of one role as one message, a blank line between their texts.

    Tool results are never merged; a text before a tool call joins the call's message.
    """
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and _joins(merged[-1], message):
            merged[-1] = _joined(merged[-1], message)
        else:
            merged.append(message)
    return merged


def _joins(first: ChatMessage, second: ChatMessage) -> bool:
    return first.role == second.role != "tool" and not first.tool_calls


def _joined(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    texts = [text for text in (first.content, second.content) if text]
    return replace(second, content="\n\n".join(texts))


def _alternating(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """User and assistant in turn, beginning with the user.

    Results of tools do not count, and a call is made in the model's turn without ending it.
    """
    due: Role = "user"
    for message in messages:
        if message.role in FILLERS and message.role != due:
            yield ChatMessage(role=due, content=FILLERS[due])
            due = message.role
        if message.role in FILLERS and not message.tool_calls:
            due = "assistant" if message.role == "user" else "user"
        yield message
