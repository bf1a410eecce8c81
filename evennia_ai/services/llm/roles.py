"""Adapt a prompt's messages to a provider, as the last step before the hash and the call.

Pure and deterministic; applied once. The steps remove special tokens of chat templates, adapt tool
calls and results, label speakers, merge adjacent messages of one role, keep one system message, and
alternate roles.

No text can imitate the output of this module. A person's words begin at the left margin with their
name and a colon, and names come only from records. The other lines of a speech are indented. Among
what people said, there are also texts that nobody said; in these, lines that look like a label are
indented too.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from evennia_ai.engine.history.role_markup import without_tags, without_tokens
from evennia_ai.engine.prompt.memo import Slot, cached_or_made
from evennia_ai.engine.prompt.messages import OF_DYNAMIC, Message, Role, ToolSpec
from evennia_ai.engine.prompt.names import (
    SOMEONE,
    bare_name,
    is_word_of_the_game,
    quote_name,
    remove_mark,
)
from evennia_ai.services.llm.chat import ChatMessage, as_chat_message, with_each_text
from evennia_ai.services.llm.speech import LINE_BREAK
from evennia_ai.services.llm.tools import (
    frame_pattern,
    has_bracket,
    narrate_calls,
    pair_results,
    replace_brackets,
    with_tools_as_text,
)

NAME_LIMIT: Final = 64
_INDENT: Final = "    "
_LIKE_A_LABEL: Final = re.compile(
    rf"^(?=[^\s:：][^:：\n]{{0,{NAME_LIMIT}}}[:：](?:\s|$))", re.MULTILINE
)

FRAME_OPEN: Final = "[Game instruction]"
FRAME_CLOSE: Final = "[/Game instruction]"
"""FRAME_OPEN and FRAME_CLOSE enclose a system message that is sent as a user message."""

FILLERS: Final[dict[Role, str]] = {"user": "(listens)", "assistant": "(is silent)"}
"""The texts that replace missing messages, for providers that require alternating roles."""

_CHAT_MESSAGE: Final = Slot[ChatMessage]("chat message")
_FRAME: Final = frame_pattern("game", "instruction")
# A text without any of these characters has no mark. In JSON, a backslash may hide one.
_MARKS: Final = re.compile(r"[<>\[\]◁\\]|/(?:no_?)?think", re.IGNORECASE)
_NOT_IN_NAME: Final = re.compile(r"[\s<|\\/>\x00-\x1f\x7f]+")

_Step = Callable[[ChatMessage], ChatMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleProfile:
    """The message format that a provider requires."""

    speakers: Literal["label", "name", "none"] = "label"
    """Where the speaker's name goes: before the text ("Anna: "), into the field `name`, or nowhere.

    A merged message of several speakers is always labelled.
    """
    merge: bool = False
    one_system: bool = False
    """True if system messages after the first are sent as framed user messages."""
    alternate: bool = False
    """True if user and assistant must alternate. This includes merging and `one_system`."""
    system: bool = True
    """True if the provider accepts the role system.

    Otherwise that text begins the first user message.
    """
    tools: Literal["native", "schema", "none"] = "native"
    """How tool calls and their results are sent.

    As messages (`native`), as text together with a description of the tools (`schema`), or as text
    only (`none`).
    """
    past_calls: Literal["native", "told"] = "native"
    """How tool calls of earlier turns are sent, if those of this turn are sent as messages."""


OPEN: Final = RoleProfile()
"""The format of most servers, which accept roles in any order."""


def alternating(roles: RoleProfile) -> RoleProfile:
    """Return the profile changed to one system message, then user and assistant alternating."""
    return replace(roles, merge=True, one_system=True, alternate=True)


STRICT: Final = alternating(OPEN)


def chat_messages(messages: Iterable[Message]) -> tuple[ChatMessage, ...]:
    """Return the messages of a prompt without the fields that only this package uses."""
    return tuple(cached_or_made(tuple(messages), _CHAT_MESSAGE, _chat_message))


def adapt_messages(
    messages: Iterable[ChatMessage],
    *,
    profile: RoleProfile,
    tools: Sequence[ToolSpec] = (),
    own_calls: Collection[str] = (),
) -> tuple[ChatMessage, ...]:
    """Return the messages in the format of `profile`, with tool results directly after their calls.

    Args:
        tools: The tools that the model may use now. They are described in the messages only if the
            profile requires it.
        own_calls: Ids of the tool calls of this turn, which may have another format than earlier
            ones.
    """
    plain = _map_cached(_without_tokens, tuple(messages))
    adapted = _with_tools(plain, tools, profile=profile, own_calls=own_calls)
    if profile.one_system or profile.alternate or not profile.system:
        adapted = _one_system(adapted)
    adapted = _map_cached(_spoken_by(profile), adapted)
    if not profile.system:
        adapted = _without_system(adapted)
    if profile.merge or profile.alternate:
        adapted = _merge_neighbours(adapted)
    if profile.alternate:
        adapted = list(_alternating(adapted))
    return tuple(adapted)


def _chat_message(message: Message) -> ChatMessage:
    known = message.memo.get(_CHAT_MESSAGE)
    if known is not None:
        return known
    made = as_chat_message(message)
    if _is_beside_speech(message):
        text = indent_labels(message.content)
        made = made if text == message.content else replace(made, content=text)
    # Cache only messages made from records: later prompts reuse them, and they leave the memory
    # with the history. A cached message without a record would form a reference cycle.
    if message.record is not None:
        message.memo[_CHAT_MESSAGE] = made
    return made


def _is_beside_speech(message: Message) -> bool:
    """True if a message appears among what people said though nobody said its text.

    Facts of the moment are excluded: the game writes them, and they do not begin with names.
    """
    among = message.role == "user" and message.block in ("history", "event")
    return among and not message.name and message.of != OF_DYNAMIC


def _with_tools(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolSpec],
    *,
    profile: RoleProfile,
    own_calls: Collection[str],
) -> Sequence[ChatMessage]:
    if profile.tools == "schema":
        return with_tools_as_text(messages, tools)
    if profile.tools == "none":
        return narrate_calls(messages)
    with_any = [one for one in messages if one.tool_calls or one.role == "tool"]
    if with_any and profile.past_calls == "told":
        return narrate_calls(messages, own_calls=own_calls)
    return pair_results(messages) if with_any else messages


def _spoken_by(profile: RoleProfile) -> _Step:
    if profile.speakers == "none":
        return _nameless
    merging = profile.merge or profile.alternate
    return _with_valid_name if profile.speakers == "name" and not merging else _with_label


def _map_cached(step: _Step, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Apply a step to each message and return the results.

    Results are cached, because every later prompt sends the same messages again.
    """
    slot = _SLOTS[step]

    def made(message: ChatMessage) -> ChatMessage:
        done = step(message)
        # A message that is in its own cache would be a reference cycle.
        message.memo[slot] = _UNCHANGED if done is message else done
        return done

    done = zip(messages, cached_or_made(messages, slot, made), strict=True)
    return [message if one is _UNCHANGED else one for message, one in done]


_UNCHANGED: Final = ChatMessage(role="system", content="")
"""A marker in the cache: the step leaves this message unchanged."""


def _without_tokens(message: ChatMessage) -> ChatMessage:
    """Return the message without marks of chat templates in its texts and tool calls.

    In the game's own texts, tags around calls and thoughts stay.
    """
    if not message.tool_calls and not _MARKS.search(f"{message.content}{message.name}"):
        return message
    undo = without_tokens if message.role == "system" else without_tags
    content, name = undo(message.content), message.name and without_tags(message.name)
    calls = tuple(
        replace(call, arguments=_plain_arguments(call.arguments)) for call in message.tool_calls
    )
    if (content, name, calls) == (message.content, message.name, message.tool_calls):
        return message
    return replace(message, content=content, name=name, tool_calls=calls)


def _plain_arguments(text: str) -> str:
    """Return a call's arguments as JSON without marks of chat templates, escaped ones included."""
    if not _MARKS.search(text):
        return text
    try:
        given = json.loads(text)
        plain = with_each_text(without_tags, given)
    except (ValueError, RecursionError):
        return without_tags(text)
    return text if plain == given else json.dumps(plain, ensure_ascii=False)


def _nameless(message: ChatMessage) -> ChatMessage:
    return message if message.name is None else replace(message, name=None)


def _with_valid_name(message: ChatMessage) -> ChatMessage:
    """Return the message with a `name` that every provider accepts, if its role may have one."""
    if message.name is None or message.role not in ("user", "assistant"):
        return _nameless(message)
    name = _NOT_IN_NAME.sub("_", message.name.strip())[:NAME_LIMIT]
    return replace(message, name=name or None)


def _with_label(message: ChatMessage) -> ChatMessage:
    """Return the message with "Anna: " before its text.

    The model's own lines get no label, because the model would copy it.
    """
    name = label_of(message.name) if message.role == "user" and message.name else ""
    if not name:
        return _nameless(message)
    return replace(message, name=None, content=add_label(name, message.content))


def label_of(name: str) -> str:
    """Return the label for a person's name, without the colon; "" if there is no name.

    A colon in the name is removed. A name that could be read as more than a name is quoted. A name
    that the game itself uses as a word is put in brackets, unless its source has marked it.
    """
    if not name.split():
        return ""
    own = remove_mark(name)
    made = bare_name(own)
    if own == name and made != SOMEONE and is_word_of_the_game(made):
        return f"({made})"
    return quote_name(f"{made}{name[len(own) :]}")


def add_label(name: str, text: str) -> str:
    """Return a person's words after their label, with all further lines indented."""
    return f"{name}: {LINE_BREAK.sub(f'{chr(10)}{_INDENT}', text)}"


def indent_labels(text: str) -> str:
    """Return a text that nobody said, with those lines indented that begin like a label."""
    if ":" not in text and "：" not in text:
        return text
    return _LIKE_A_LABEL.sub(_INDENT, LINE_BREAK.sub("\n", text))


def _one_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with a single system message at the start.

    Leading system messages become one. Later ones become framed user messages.
    """
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    head = _merge_neighbours([_nameless(message) for message in messages[:leading]])
    return [*head, *_map_cached(_with_frame, messages[leading:])]


def _without_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with the system message put at the start of the first user message."""
    if not messages or messages[0].role != "system":
        return messages
    head, rest = _with_frame(messages[0]), messages[1:]
    if rest and rest[0].role == "user":
        head, rest = _join_two(head, rest[0]), rest[1:]
    return [head, *rest]


def _with_frame(message: ChatMessage) -> ChatMessage:
    """Return a system message in its frame.

    Other messages are returned without texts that look like the frame.
    """
    if message.role != "system" and not has_bracket(f"{message.content}{message.name}"):
        return message
    content = replace_brackets(_FRAME, message.content)
    if message.role == "system":
        return ChatMessage(role="user", content=f"{FRAME_OPEN}\n{content}\n{FRAME_CLOSE}")
    name = None if message.name is None else replace_brackets(_FRAME, message.name)
    return replace(message, content=content, name=name)


def _merge_neighbours(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with adjacent ones of the same role merged, separated by a blank line.

    Tool results are never merged. A text before a tool call joins the call's message.
    """
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and _may_join(merged[-1], message):
            merged[-1] = _join_two(merged[-1], message)
        else:
            merged.append(message)
    return merged


def _may_join(first: ChatMessage, second: ChatMessage) -> bool:
    return first.role == second.role != "tool" and not first.tool_calls


def _join_two(first: ChatMessage, second: ChatMessage) -> ChatMessage:
    texts = [text for text in (first.content, second.content) if text]
    return replace(second, content="\n\n".join(texts))


def _alternating(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield messages in which user and assistant alternate, beginning with the user.

    Tool results are not counted. A tool call does not end the model's turn.
    """
    due: Role = "user"
    for message in messages:
        if message.role in FILLERS and message.role != due:
            yield ChatMessage(role=due, content=FILLERS[due])
            due = message.role
        if message.role in FILLERS and not message.tool_calls:
            due = "assistant" if message.role == "user" else "user"
        yield message


# The cache slot of each step, in which a message keeps the result of the step.
_SLOTS: Final[Mapping[_Step, Slot[ChatMessage]]] = {
    step: Slot(step.__name__)
    for step in (_without_tokens, _with_frame, _nameless, _with_valid_name, _with_label)
}
