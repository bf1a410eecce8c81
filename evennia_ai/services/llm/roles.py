"""Adapt a prompt's messages to a provider, as the last step before the hash and the call.

Pure, deterministic, applied once. The steps remove special tokens of chat templates, adapt tool
calls and results, label speakers, merge neighbours of one role, keep one system message, and
alternate roles. No text can imitate the output of this module. A person's words begin at the margin
with their name and a colon; names come only from records. Further lines of a speech are indented.
So is every line that looks like a label in a text that nobody said, among what people said.
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
"""With FRAME_OPEN: the frame of a system message that is sent as a user message."""

FILLERS: Final[dict[Role, str]] = {"user": "(listens)", "assistant": "(is silent)"}
"""The text of a missing message, for providers that require strict alternation."""

_CHAT_MESSAGE: Final = Slot[ChatMessage]("chat message")
_FRAME: Final = frame_pattern("game", "instruction")
# Characters without which there is no mark. A backslash starts an escape in JSON.
_MARKS: Final = re.compile(r"[<>\[\]◁\\]|/(?:no_?)?think", re.IGNORECASE)
_NOT_IN_NAME: Final = re.compile(r"[\s<|\\/>\x00-\x1f\x7f]+")

_Step = Callable[[ChatMessage], ChatMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleProfile:
    """The form that a provider's messages must have."""

    speakers: Literal["label", "name", "none"] = "label"
    """Where the speaker goes: before the text ("Anna: "), into the field `name`, or nowhere.

    A merged message of several speakers is always labelled.
    """
    merge: bool = False
    one_system: bool = False
    """True if a later system message becomes a framed user message."""
    alternate: bool = False
    """Includes merging and `one_system`."""
    system: bool = True
    """True if there is a role system. Without it, its text starts the first user message."""
    tools: Literal["native", "schema", "none"] = "native"
    """How calls and results are sent.

    As messages (`native`), as text with the list of tools (`schema`), or as text only (`none`).
    """
    past_calls: Literal["native", "told"] = "native"
    """The form of earlier turns' calls, if those of this turn are messages (`native`)."""


OPEN: Final = RoleProfile()
"""Accepts any order of roles, as most servers do."""


def alternating(roles: RoleProfile) -> RoleProfile:
    """Return the profile with one system message, then user and assistant in turn."""
    return replace(roles, merge=True, one_system=True, alternate=True)


STRICT: Final = alternating(OPEN)


def chat_messages(messages: Iterable[Message]) -> tuple[ChatMessage, ...]:
    """Return the messages of a prompt without our own fields."""
    return tuple(cached_or_made(tuple(messages), _CHAT_MESSAGE, _chat_message))


def adapt_messages(
    messages: Iterable[ChatMessage],
    *,
    profile: RoleProfile,
    tools: Sequence[ToolSpec] = (),
    own_calls: Collection[str] = (),
) -> tuple[ChatMessage, ...]:
    """Return the messages in the form of `profile`, with tool results directly after their calls.

    Args:
        tools: The tools that the model may use now. They become text only if the profile requires
            it.
        own_calls: Ids of the calls of this turn.
    """
    plain = _each(_plain, tuple(messages))
    adapted = _with_tools(plain, tools, profile=profile, own_calls=own_calls)
    if profile.one_system or profile.alternate or not profile.system:
        adapted = _one_system(adapted)
    adapted = _each(_spoken_by(profile), adapted)
    if not profile.system:
        adapted = _without_system(adapted)
    if profile.merge or profile.alternate:
        adapted = _merged(adapted)
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
    # Cache only messages made from records: later prompts reuse them, and the window releases them.
    # A cached message without a record would form a reference cycle.
    if message.record is not None:
        message.memo[_CHAT_MESSAGE] = made
    return made


def _is_beside_speech(message: Message) -> bool:
    """True if nobody said the text of a message among what people said, in their role.

    Facts of a request are excluded: they are the game's own, and begin with words that are no name.
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
    return _named if profile.speakers == "name" and not merging else _labelled


def _each(step: _Step, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the result of a step for each message.

    It is cached, because every later prompt sends the message again.
    """
    slot = _SLOTS[step]

    def made(message: ChatMessage) -> ChatMessage:
        done = step(message)
        # A message that caches itself would be a reference cycle.
        message.memo[slot] = _UNCHANGED if done is message else done
        return done

    done = zip(messages, cached_or_made(messages, slot, made), strict=True)
    return [message if one is _UNCHANGED else one for message, one in done]


_UNCHANGED: Final = ChatMessage(role="system", content="")
"""Marks in the cache that a step leaves a message unchanged."""


def _plain(message: ChatMessage) -> ChatMessage:
    """Return the message without marks of chat templates, in texts and calls.

    Tags around calls and thoughts stay in the game's own texts.
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
    """Return the JSON of a call's arguments without such marks, also escaped ones."""
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


def _named(message: ChatMessage) -> ChatMessage:
    """Return the message with a name that every provider accepts, on roles that may have one."""
    if message.name is None or message.role not in ("user", "assistant"):
        return _nameless(message)
    name = _NOT_IN_NAME.sub("_", message.name.strip())[:NAME_LIMIT]
    return replace(message, name=name or None)


def _labelled(message: ChatMessage) -> ChatMessage:
    """Return the message with "Anna: " before its text.

    The model's own lines get no label, because it would copy that.
    """
    name = label_of(message.name) if message.role == "user" and message.name else ""
    if not name:
        return _nameless(message)
    return replace(message, name=None, content=add_label(name, message.content))


def label_of(name: str) -> str:
    """Return the text before the colon for a person's name; "" without a name.

    The name has no colon. A name that could be more than a name is quoted. A name that is a word of
    the game is put in brackets, unless its source has marked it.
    """
    if not name.split():
        return ""
    own = remove_mark(name)
    made = bare_name(own)
    if own == name and made != SOMEONE and is_word_of_the_game(made):
        return f"({made})"
    return quote_name(f"{made}{name[len(own) :]}")


def add_label(name: str, text: str) -> str:
    """Return a person's words, of which only the line with the label starts at the margin."""
    return f"{name}: {LINE_BREAK.sub(f'{chr(10)}{_INDENT}', text)}"


def indent_labels(text: str) -> str:
    """Return a text that nobody said, with lines indented that begin like a label."""
    if ":" not in text and "：" not in text:
        return text
    return _LIKE_A_LABEL.sub(_INDENT, LINE_BREAK.sub("\n", text))


def _one_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the leading system messages as one, and later ones as framed user messages."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    head = _merged([_nameless(message) for message in messages[:leading]])
    return [*head, *_each(_framed, messages[leading:])]


def _without_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with the system message at the start of the first user message."""
    if not messages or messages[0].role != "system":
        return messages
    head, rest = _framed(messages[0]), messages[1:]
    if rest and rest[0].role == "user":
        head, rest = _joined(head, rest[0]), rest[1:]
    return [head, *rest]


def _framed(message: ChatMessage) -> ChatMessage:
    """Return a system message in its frame, or another message without look-alikes of the frame."""
    if message.role != "system" and not has_bracket(f"{message.content}{message.name}"):
        return message
    content = replace_brackets(_FRAME, message.content)
    if message.role == "system":
        return ChatMessage(role="user", content=f"{FRAME_OPEN}\n{content}\n{FRAME_CLOSE}")
    name = None if message.name is None else replace_brackets(_FRAME, message.name)
    return replace(message, content=content, name=name)


def _merged(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with neighbours of one role merged, a blank line between their texts.

    Tool results are never merged. A text before a tool call joins the call's message.
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
    """Yield user and assistant messages in turn, beginning with the user.

    Results of tools do not count. A call is part of the model's turn and does not end it.
    """
    due: Role = "user"
    for message in messages:
        if message.role in FILLERS and message.role != due:
            yield ChatMessage(role=due, content=FILLERS[due])
            due = message.role
        if message.role in FILLERS and not message.tool_calls:
            due = "assistant" if message.role == "user" else "user"
        yield message


# The slots in which a message caches the result of each step.
_SLOTS: Final[Mapping[_Step, Slot[ChatMessage]]] = {
    step: Slot(step.__name__) for step in (_plain, _framed, _nameless, _named, _labelled)
}
