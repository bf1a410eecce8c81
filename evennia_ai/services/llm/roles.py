"""Fits a prompt's messages to what a provider takes: the last step before the hash and the call.

Pure, deterministic, applied once. Special tokens of chat templates are undone, tool calls and
results fitted, speakers labelled, neighbours of one role merged, one system message kept, roles
alternated. Nobody's text can pass for what this module writes. What somebody said begins at the
margin with their name and a colon; names come from records alone. Further lines of a speech are
indented, and so is whatever reads like a label in a text that nobody said and that stands among
what was said.
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
    frame,
    has_bracket,
    narrated,
    paired,
    undone,
    with_tools_as_text,
)

NAME_LIMIT: Final = 64
_INDENT: Final = "    "
_LIKE_A_LABEL: Final = re.compile(
    rf"^(?=[^\s:：][^:：\n]{{0,{NAME_LIMIT}}}[:：](?:\s|$))", re.MULTILINE
)

FRAME_OPEN: Final = "[Game instruction]"
FRAME_CLOSE: Final = "[/Game instruction]"
"""Around a system message that must travel as a user message."""

FILLERS: Final[dict[Role, str]] = {"user": "(listens)", "assistant": "(is silent)"}
"""Said for the one whose turn is missing where a provider wants strict alternation."""

_CHAT_MESSAGE: Final = Slot[ChatMessage]("chat message")
_FRAME: Final = frame("game", "instruction")
# Without any of these there is no mark. A backslash begins what is escaped in JSON.
_MARKS: Final = re.compile(r"[<>\[\]◁\\]|/(?:no_?)?think", re.IGNORECASE)
_NOT_IN_NAME: Final = re.compile(r"[\s<|\\/>\x00-\x1f\x7f]+")

_Step = Callable[[ChatMessage], ChatMessage]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleProfile:
    """What a provider's messages must look like."""

    speakers: Literal["label", "name", "none"] = "label"
    """Where a message's speaker goes: before the text ("Anna: "), into the field `name`, nowhere.

    A message merged of several speakers is always labelled.
    """
    merge: bool = False
    one_system: bool = False
    """True if a later system message becomes a framed user message."""
    alternate: bool = False
    """Includes both merging and `one_system`."""
    system: bool = True
    """True if there is a role system; without it what it says begins the first user message."""
    tools: Literal["native", "schema", "none"] = "native"
    """Calls and results are messages of their own (`native`), text with the list of tools
    (`schema`), or only told (`none`).
    """
    past_calls: Literal["native", "told"] = "native"
    """How calls of earlier turns are sent where those of this turn are messages (`native`)."""


OPEN: Final = RoleProfile()
"""Takes any order of roles: the servers of today."""


def alternating(roles: RoleProfile) -> RoleProfile:
    """Return the same with one system message, then user and assistant in turn."""
    return replace(roles, merge=True, one_system=True, alternate=True)


STRICT: Final = alternating(OPEN)


def chat_messages(messages: Iterable[Message]) -> tuple[ChatMessage, ...]:
    """The messages of a prompt without what only we know about them."""
    return tuple(cached_or_made(tuple(messages), _CHAT_MESSAGE, _chat_message))


def adapt(
    messages: Iterable[ChatMessage],
    *,
    profile: RoleProfile,
    tools: Sequence[ToolSpec] = (),
    own_calls: Collection[str] = (),
) -> tuple[ChatMessage, ...]:
    """The messages as `profile` wants them; the results of tools stand right behind their calls.

    `tools` are those the model may use now; they become text only where the profile says so.
    `own_calls` are the ids of calls that were made in this turn.
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
        text = set_in(message.content)
        made = made if text == message.content else replace(made, content=text)
    # One of a record goes out with every later prompt, and a window lets go of it; any other is of
    # one prompt, and the two would hold each other until all of the memory is searched.
    if message.record is not None:
        message.memo[_CHAT_MESSAGE] = made
    return made


def _is_beside_speech(message: Message) -> bool:
    """True if it stands among what people said, in their role, and nobody said it.

    The facts of a request are the game's own and begin with words that are nobody's name.
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
        return narrated(messages)
    with_any = [one for one in messages if one.tool_calls or one.role == "tool"]
    if with_any and profile.past_calls == "told":
        return narrated(messages, own_calls=own_calls)
    return paired(messages) if with_any else messages


def _spoken_by(profile: RoleProfile) -> _Step:
    if profile.speakers == "none":
        return _nameless
    merging = profile.merge or profile.alternate
    return _named if profile.speakers == "name" and not merging else _labelled


def _each(step: _Step, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What a step makes of each, worked out once: they go out with every later prompt."""
    slot = _SLOTS[step]

    def made(message: ChatMessage) -> ChatMessage:
        done = step(message)
        # One that knew itself would be freed by a search of the collector alone.
        message.memo[slot] = _UNCHANGED if done is message else done
        return done

    done = zip(messages, cached_or_made(messages, slot, made), strict=True)
    return [message if one is _UNCHANGED else one for message, one in done]


_UNCHANGED: Final = ChatMessage(role="system", content="")
"""Stands where a step leaves a message as it is."""


def _plain(message: ChatMessage) -> ChatMessage:
    """Without what a server would take for its chat template's own marks, in texts and calls.

    Tags that models write around calls and thoughts stand as they are in what the game itself says.
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
    """The JSON of a call's arguments without such marks; servers read what is escaped in it too."""
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
    """With a name that every provider takes, on the roles that may have one."""
    if message.name is None or message.role not in ("user", "assistant"):
        return _nameless(message)
    name = _NOT_IN_NAME.sub("_", message.name.strip())[:NAME_LIMIT]
    return replace(message, name=name or None)


def _labelled(message: ChatMessage) -> ChatMessage:
    """With "Anna: " before the text; the model's own lines stay bare, or it would copy that."""
    name = label(message.name) if message.role == "user" and message.name else ""
    if not name:
        return _nameless(message)
    return replace(message, name=None, content=labelled(name, message.content))


def label(name: str) -> str:
    """What stands before the colon for somebody of this name, "" where there is no name.

    A name holds no colon there, one that could be more than a name is quoted, and one that is a
    word of the game is put in brackets, unless where it comes from has marked it.
    """
    if not name.split():
        return ""
    own = remove_mark(name)
    made = bare_name(own)
    if own == name and made != SOMEONE and is_word_of_the_game(made):
        return f"({made})"
    return quote_name(f"{made}{name[len(own) :]}")


def labelled(name: str, text: str) -> str:
    """What somebody of this name said: only the label's own line starts at the margin."""
    return f"{name}: {LINE_BREAK.sub(f'{chr(10)}{_INDENT}', text)}"


def set_in(text: str) -> str:
    """A text that nobody said, with every line indented that begins like a label."""
    if ":" not in text and "：" not in text:
        return text
    return _LIKE_A_LABEL.sub(_INDENT, LINE_BREAK.sub("\n", text))


def _one_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The leading system messages as one; every later one framed, as a user message."""
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    head = _merged([_nameless(message) for message in messages[:leading]])
    return [*head, *_each(_framed, messages[leading:])]


def _without_system(messages: list[ChatMessage]) -> list[ChatMessage]:
    """The leading system message, the only one, as the beginning of the first user message."""
    if not messages or messages[0].role != "system":
        return messages
    head, rest = _framed(messages[0]), messages[1:]
    if rest and rest[0].role == "user":
        head, rest = _joined(head, rest[0]), rest[1:]
    return [head, *rest]


def _framed(message: ChatMessage) -> ChatMessage:
    """A system message in its frame; look-alikes of the frame in any text or name are undone."""
    if message.role != "system" and not has_bracket(f"{message.content}{message.name}"):
        return message
    content = undone(_FRAME, message.content)
    if message.role == "system":
        return ChatMessage(role="user", content=f"{FRAME_OPEN}\n{content}\n{FRAME_CLOSE}")
    name = None if message.name is None else undone(_FRAME, message.name)
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


# Where a message keeps what each step makes of it.
_SLOTS: Final[Mapping[_Step, Slot[ChatMessage]]] = {
    step: Slot(step.__name__) for step in (_plain, _framed, _nameless, _named, _labelled)
}
