"""A transcript: the messages that are summarised, as text that is data and nothing else.

What somebody said stays on lines that begin with who said it; nobody's name or text can make a line
that passes for somebody else's, for the frame of a chat or for the end of the transcript.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final, Literal, NamedTuple

from evennia_ai.history.compaction import CompactionPlan
from evennia_ai.history.role_markup import neutral
from evennia_ai.prompt.messages import Message

NAME_CHARACTERS: Final = 64

# Controls but for tab and line feed, halves of pairs, what turns the direction of writing round,
# noncharacters, and the invisible copies of ASCII.
UNREADABLE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff"
    "\U000e0000-\U000e007f]"
)
_LINE_BREAK: Final = re.compile("\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_NOT_IN_NAME: Final = re.compile(r"[\s:：\"\[\]<>|#*{}]+")
_QUOTE: Final = re.compile(r"[^\n\":]{1,80} (?:said|called) \"[^\n\"]*\"")

Verb = Literal["said", "called"]


class Said(NamedTuple):
    """One thing said or called; `is_summary` marks the text of an earlier summary."""

    speaker: str
    verb: Verb
    text: str
    is_summary: bool = False


def said_in(plan: CompactionPlan, *, npc_name: str) -> Iterator[Said]:
    """What the summarised messages say, oldest first; `npc_name` says what the model said.

    Bookkeeping (context blocks, notes, frozen lore) is not said by anybody and is left out: a
    prompt makes it anew, and what it tells may not outlive it.
    """
    return said_of(plan.summarised, npc_name=npc_name, summaries=plan.summaries)


def said_of(
    messages: Sequence[Message], *, npc_name: str, summaries: Collection[str] = ()
) -> Iterator[Said]:
    """The same of any messages, of which `summaries` are records of earlier summaries."""
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        if not message.counted:
            continue
        is_summary = message.record in summaries
        who = "An earlier summary" if is_summary else _speaker(message, npc_name, tools)
        if message.content.strip():
            yield Said(who, "said", readable(message.content), is_summary)
        for call in message.tool_calls:
            yield Said(who, "called", readable(f"{call.name} {call.arguments}"))


def quote(said: Said, text: str) -> str:
    """One line in which the speaker says `text`; quotes inside it become single ones."""
    inner = " ".join(neutral(text).split()).replace('"', "'")
    return f'{said.speaker} {said.verb} "{inner}"'


def is_quote(line: str) -> bool:
    """Whether the line has the form that `quote` gives."""
    return _QUOTE.fullmatch(line) is not None


def labelled(number: int, said: Said, text: str) -> str:
    """`text` as lines of a transcript; only the first one is not indented."""
    doing = said.speaker if said.verb == "said" else f"{said.speaker} (calls)"
    return f"[{number}] {doing}: " + neutral(text).replace("\n", "\n    ")


def one_kind_of_line_break(text: str) -> str:
    """`text` with line feeds for every break of a line."""
    return _LINE_BREAK.sub("\n", text)


def readable(text: str) -> str:
    """`text` without what nobody can read, with one kind of line break."""
    return UNREADABLE.sub("", one_kind_of_line_break(text)).replace("\ufffd", "").strip()


def a_name(name: str) -> str:
    """`name` on one line, without marks that end a label or open a frame; may be empty."""
    return _NOT_IN_NAME.sub(" ", neutral(readable(name))).strip()[:NAME_CHARACTERS].strip()


def _speaker(message: Message, npc_name: str, tools: dict[str, str]) -> str:
    if message.role == "tool":
        tool = a_name(message.name or tools.get(message.tool_call_id or "", ""))
        return f"The tool {tool}".strip()
    if message.role == "assistant":
        return a_name(message.name or npc_name) or "The character"
    return a_name(message.name or "") or ("The game" if message.role == "system" else "Somebody")
