"""Put tools into messages: calls and results in the form that a server accepts, or as text.

Pure. A result always comes directly after its call, whatever was cut from the history or came
between them. If a server does not support tools, one constant text after the system messages
describes them. The model then writes one JSON object with its words and acts. It sees its earlier
calls in the same form, and their results as framed user messages. A text without JSON is speech; an
incomplete JSON object is an error.

No text can imitate a frame, because texts that look like one are changed. They may differ from a
real frame in case and spaces, have full-width brackets or invisible letters inside words, or have
line breaks escaped as in JSON. A match never crosses a quote, so it stays inside one text of a JSON
value.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from evennia_ai.engine.errors import ModelRubbish
from evennia_ai.engine.foreign.fields import list_problems
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import ToolCall, ToolSpec
from evennia_ai.services.llm.call_forms import ARGUMENTS, NAMES, Call, Offered, calls_in, known_name
from evennia_ai.services.llm.chat import (
    AnswerSchema,
    ChatMessage,
    ChatReply,
    ChatRequest,
    WrittenCall,
    made_calls,
    read_arguments,
)
from evennia_ai.services.llm.reasoning import LateEnd, without_thoughts
from evennia_ai.services.llm.speech import LINE_BREAK
from evennia_ai.services.llm.structured import JsonObjects, json_objects, strict_schema
from evennia_ai.services.llm.text_calls import channel_calls, read_calls
from evennia_ai.services.llm.unwrapping import speech_in_json

_UNSEEN: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_BLANK: Final = rf"(?:\s|\\[nrt]|{_UNSEEN})"
_MOST_BEHIND: Final = 80
"""How many characters between the words and the closing bracket still belong to an imitated frame.
"""


def frame_pattern(*words: str) -> re.Pattern[str]:
    """Return a pattern that matches imitations of an opening or closing frame with these words."""
    spelt = rf"{_BLANK}+".join(f"{_UNSEEN}*".join(word) for word in words)
    behind = rf"[^\[\]［］\n\"]{{0,{_MOST_BEHIND}}}"
    return re.compile(rf"[\[［]((?:{_BLANK}|/)*{spelt}{behind})([\]］]?)", re.IGNORECASE)


def has_bracket(text: str) -> bool:
    """True if `text` has a bracket, so that it may contain an imitated frame."""
    return "[" in text or "［" in text


def replace_brackets(pattern: re.Pattern[str], text: str) -> str:
    """Return `text` with imitations of a frame put in round brackets."""
    return pattern.sub(_in_round_brackets, text)


def _in_round_brackets(found: re.Match[str]) -> str:
    return f"({found[1]})" if found[2] else f"({found[1]}"


RESULT_OPEN: Final = "[Tool result]"
RESULT_CLOSE: Final = "[/Tool result]"
"""RESULT_OPEN and RESULT_CLOSE enclose a tool's result that is sent as a user message."""

NO_RESULT: Final = "(no result)"
"""The text sent for a call whose result is not in the prompt."""

_UNFRAMED: Final = Slot[ChatMessage]("unframed")
_FRAME: Final = frame_pattern("tool", "result")  # The pattern also matches "results".

# The results of calls. The key is the index of the message and the index of the call in it.
_Results = dict[tuple[int, int], ChatMessage]


def pair_results(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages with each result directly after its call, in the order of the calls.

    A call without a result gets `NO_RESULT`. A result without its call becomes a framed user
    message.
    """
    results, lost = _results(messages)
    if lost:
        messages = [remove_frames(message) for message in messages]
        results, lost = _results(messages)
    ordered: list[ChatMessage] = []
    for place, message in enumerate(messages):
        if place in lost:
            ordered.append(framed_result(message))
        elif message.role != "tool":
            ordered.append(message)
            for number, call in enumerate(message.tool_calls):
                ordered.append(results.get((place, number)) or _missing_result(call))
    return ordered


def narrate_calls(
    messages: Sequence[ChatMessage], *, own_calls: Collection[str] = ()
) -> list[ChatMessage]:
    """Return the messages with tool calls and results written as text.

    Args:
        own_calls: Ids of calls that stay calls. The messages that make them and their results are
            not changed.
    """
    return list(_narrate([remove_frames(message) for message in messages], frozenset(own_calls)))


def framed_result(result: ChatMessage, label: str = "") -> ChatMessage:
    """Return a tool's result as a user message in its frame.

    Imitations of the frame are changed.
    """
    said = f"{label}: {result.content}" if label else result.content
    told_lines = LINE_BREAK.sub("\n", without_frames(said))
    return ChatMessage(role="user", content=f"{RESULT_OPEN}\n{told_lines}\n{RESULT_CLOSE}")


def remove_frames(message: ChatMessage) -> ChatMessage:
    """Return the message without imitations of the frame in its text and its speaker's name."""
    if not has_bracket(f"{message.content}{message.name or ''}"):
        return message
    known = message.memo.get(_UNFRAMED)
    if known is not None:
        return known
    name = None if message.name is None else without_frames(message.name)
    made = replace(message, content=without_frames(message.content), name=name)
    message.memo[_UNFRAMED] = made
    return made


def without_frames(text: str) -> str:
    """Return `text` without imitations of the frame."""
    return replace_brackets(_FRAME, text)


def _narrate(messages: Sequence[ChatMessage], own_calls: frozenset[str]) -> Iterator[ChatMessage]:
    calls: dict[str, ToolCall] = {}
    for message in pair_results(messages):
        if message.role == "tool" and message.tool_call_id in calls:
            call = calls[message.tool_call_id or ""]
            yield framed_result(message, f"{call.name} {call.arguments}")
        elif message.tool_calls and own_calls.isdisjoint(call.id for call in message.tool_calls):
            calls = {call.id: call for call in message.tool_calls}
            if message.content:
                yield replace(message, tool_calls=())
        else:
            calls = {} if message.tool_calls else calls
            yield message


def _results(messages: Sequence[ChatMessage]) -> tuple[_Results, set[int]]:
    """Return the result of each call, and the indexes of messages with results without a call.

    A result belongs to the newest call before it that has its id. A call has one result.
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


def _missing_result(call: ToolCall) -> ChatMessage:
    return ChatMessage(role="tool", content=NO_RESULT, tool_call_id=call.id)


MOST_ACTS: Final = 8
SCHEMA_NAME: Final = "npc_turn"

INTRODUCTION: Final = """\
You can act with the tools below. Answer with one JSON object and nothing else:
{"say": "what you say aloud", "acts": [{"tool": "name of a tool", "arguments": {}}]}
"say" may be empty, and "acts" is empty when you do nothing. What your acts led to is then told to \
you as a tool result, and you answer again. Use no tool that is not in this list:"""

_MEMBERS: Final = frozenset({"say", "acts"})


class _Act(BaseModel):
    """One act in a model's answer. Member names of other formats are accepted too."""

    model_config = ConfigDict(extra="allow")

    tool: Annotated[str, Field(validation_alias=AliasChoices(*NAMES), min_length=1)]
    arguments: Annotated[Any, Field(validation_alias=AliasChoices(*ARGUMENTS))] = None

    def call(self) -> Call:
        """Return the name and the arguments. Some models write the arguments next to the name."""
        has_arguments = "arguments" in self.model_fields_set
        return self.tool, self.arguments if has_arguments else self.model_extra


class _Answer(BaseModel):
    say: str | None = None
    acts: Annotated[list[_Act], Field(max_length=MOST_ACTS)] | None = None


def with_tools_as_text(
    messages: Sequence[ChatMessage], tools: Sequence[ToolSpec]
) -> list[ChatMessage]:
    """Return the messages for a server without tools, with a text that describes the tools.

    The description comes directly after the leading system messages. Imitations of a tool result in
    any text are changed. Apply this once, before the prompt's hash is computed.
    """
    shown = list(_show_calls([remove_frames(message) for message in messages]))
    if not tools:
        return shown
    leading = next((n for n, one in enumerate(shown) if one.role != "system"), len(shown))
    return [
        *shown[:leading],
        ChatMessage(role="system", content=tool_text(tools)),
        *shown[leading:],
    ]


def tool_text(tools: Sequence[ToolSpec]) -> str:
    """Return the description of the tools for the model. The order of `tools` has no effect."""
    return "\n".join([INTRODUCTION, *(_describe_tool(tool) for tool in _sorted(tools))])


def schema_of(tools: Sequence[ToolSpec]) -> AnswerSchema:
    """Return the schema of an answer with words and acts, for servers that enforce schemas."""
    members: dict[str, Any] = {"say": {"type": "string"}}
    if tools:
        acts = [_act_schema(tool) for tool in _sorted(tools)]
        members["acts"] = {"type": "array", "items": {"anyOf": acts}, "maxItems": MOST_ACTS}
    schema = strict_schema({"type": "object", "properties": members}, origin=SCHEMA_NAME)
    return AnswerSchema(name=SCHEMA_NAME, schema=schema)


def reply_from(
    reply: ChatReply,
    tools: Sequence[ToolSpec],
    *,
    request: ChatRequest,
    as_schema: bool,
    late_end: LateEnd = "hides_all_before",
) -> tuple[ChatReply, tuple[str, ...]]:
    """Return the reply with calls that were written as text turned into tool calls.

    Also return the names of calls that were left out. A server may support tools but not know in
    which format this model writes tool calls. If the prompt described the tools (`as_schema`), the
    text may also be an answer in the form that was asked for. The ids of calls depend only on the
    request and the call.

    A call in a model's own format is left out if its tool is not among `tools`. In an answer of the
    required form it stays, and the code that runs the calls refuses it.

    Raises:
        ModelRubbish: the text is an incomplete answer of the required form.
    """
    if reply.offline or reply.tool_calls:
        return reply, ()
    offered = {tool.name: tuple(tool.parameters.get("properties", {})) for tool in tools}
    found = read_calls(
        without_thoughts(reply.text, late_end=late_end),
        offered,
        is_cut=reply.is_cut,
        bare_json=not as_schema,
    )
    channels = channel_calls(reply.text, offered)
    called, dropped = channels.calls + found.calls, channels.dropped + found.dropped
    text, is_read = found.rest.strip(), bool(called or dropped)
    written = [WrittenCall(name=call.name, arguments=call.arguments) for call in called]
    if as_schema:
        answer_text = text if is_read else reply.text
        objects = json_objects(answer_text)
        if objects.problem:
            raise ModelRubbish(reply.model, objects.problem)
        answers = _answers(objects, offered, reply.model)
        # Speech in other JSON is unwrapped later.
        if objects.objects and not (answers or objects.around or speech_in_json(answer_text)):
            raise ModelRubbish(reply.model, "its JSON object has neither 'say' nor 'acts'")
        acts = [act.call() for answer in answers for act in answer.acts or ()]
        if len(acts) > MOST_ACTS:
            raise ModelRubbish(reply.model, f"it has more than {MOST_ACTS} acts")
        written += [_written_call(act, offered) for act in acts]
        if answers:
            said = [answer.say.strip() for answer in answers if answer.say and answer.say.strip()]
            text, is_read = "\n".join(said) or objects.around.strip(" \t\n[],"), True
    if not is_read:
        return reply, ()
    return replace(reply, text=text, tool_calls=made_calls(written, request)), dropped


def _show_calls(messages: Sequence[ChatMessage]) -> Iterator[ChatMessage]:
    """Yield calls written as the answers that made them, and results as framed messages."""
    names: dict[str, str] = {}
    for message in pair_results(messages):
        if message.role == "tool":
            yield framed_result(message, names[message.tool_call_id or ""])
        elif message.tool_calls:
            names = {call.id: call.name for call in message.tool_calls}
            yield replace(message, content=_as_answer(message), tool_calls=())
        else:
            yield message


def _as_answer(message: ChatMessage) -> str:
    calls = [(call, read_arguments(call)) for call in message.tool_calls]
    acts = [
        {"tool": call.name, "arguments": call.arguments if read is None else read}
        for call, read in calls
    ]
    return without_frames(_json({"say": message.content, "acts": acts}))


def _describe_tool(tool: ToolSpec) -> str:
    members = _json(_parameters(tool)["properties"], sort_keys=True)
    return f"- {tool.name}: {tool.description}\n  arguments: {members}"


def _act_schema(tool: ToolSpec) -> Mapping[str, Any]:
    named = {"type": "string", "enum": [tool.name]}
    return {"type": "object", "properties": {"tool": named, "arguments": _parameters(tool)}}


def _parameters(tool: ToolSpec) -> dict[str, Any]:
    return strict_schema({"type": "object", **tool.parameters}, origin=tool.name)


def _answers(found: JsonObjects, offered: Offered, model: str) -> list[_Answer]:
    """Return the objects that are answers. Other objects are accepted only inside prose."""
    answers: list[_Answer] = []
    try:
        for value in found.objects:
            if value.keys() & _MEMBERS:
                answers.append(_Answer.model_validate(value))
            elif calls := calls_in(value, offered):
                acts = [_Act(tool=name, arguments=arguments) for name, arguments in calls]
                answers.append(_Answer(acts=acts))
    except ValidationError as error:
        where, words = list_problems(error)[0]
        raise ModelRubbish(
            model, f"its answer does not have the required form: {where}: {words}"
        ) from None
    return answers


def _written_call(act: Call, offered: Offered) -> WrittenCall:
    name, given = act
    arguments = given if isinstance(given, str) else _json({} if given is None else given)
    return WrittenCall(name=known_name(name, offered) or name, arguments=arguments)


def _sorted(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    return sorted(tools, key=lambda tool: tool.name)


def _json(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=sort_keys)
