"""A model with scripted replies, for demos and for tests of this package and of games.

It can be as slow as a real model, stream its text, call tools, and fail before or during a reply.

Its lines come from code or from a script, which is a YAML or JSON file. A script is a list of
entries, or an object with that list under `replies` and options for all of them. An entry is a
text, or an object with `reply`, `tool_calls`, `fail`, `delay_seconds` and `when`. An entry with
`when` is used each time the newest message contains these words.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from twisted.internet.defer import Deferred, fail, maybeDeferred, succeed
from twisted.internet.task import deferLater

from evennia_ai.engine.errors import (
    EndpointError,
    FormatError,
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.engine.foreign.documents import read_document
from evennia_ai.engine.foreign.fields import error_words
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Listener, Usage
from evennia_ai.services.llm.resilience import Clock

FILES: Final = frozenset({".yaml", ".yml", ".json"})

_DOTTED: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """A reply that comes after a delay. If it has an `error`, the call fails after the text."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    error: Exception | None = None
    delay_seconds: float | None = None


Line = str | ChatReply | Exception | ScriptedReply
"""A text, a complete reply, an error to fail with, or a reply with a delay."""


class ScriptedModel:
    """A model for tests and demos that answers with the given lines, in order.

    The script may also be a callable that makes a line from a request. `requests` collects every
    request. A listener hears `piece_characters` of a reply every `piece_seconds`. Delays need a
    `clock`. After the last line a call fails with `ScriptEndedError`.
    """

    offline: Final = False

    def __init__(
        self,
        script: Iterable[Line] | Callable[[ChatRequest], Line],
        *,
        name: str = "scripted",
        delay_seconds: float = 0.0,
        piece_characters: int = 16,
        piece_seconds: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        if (delay_seconds or piece_seconds) and clock is None:
            raise EndpointError(name, "clock", "is missing: a delay needs one")
        if piece_characters < 1:
            raise EndpointError(name, "piece_characters", "must be 1 or more")
        self._line = script if callable(script) else _in_order(name, script)
        self._name = name
        self._delay_seconds = delay_seconds
        self._piece_characters = piece_characters
        self._piece_seconds = piece_seconds
        self._clock = clock
        self.requests: list[ChatRequest] = []
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Return the next line of the script, after its delay."""
        self.requests.append(request)
        line = maybeDeferred(self._line, request)
        return line.addCallback(self._play_reply, request, listener)

    def close(self) -> None:
        self.closed = True

    def _play_reply(
        self, line: Line, request: ChatRequest, listener: Listener | None
    ) -> Deferred[ChatReply]:
        """Wait for the delay, send the fragments to the listener, and return the reply."""
        reply = line if isinstance(line, ScriptedReply) else _plainly(line)
        seconds = self._delay_seconds if reply.delay_seconds is None else reply.delay_seconds
        coming = self._after(seconds)
        for piece in self._pieces(reply.text) if listener else ():
            coming.addCallback(lambda _, listen=listener, piece=piece: listen(piece))
            if self._piece_seconds:
                coming.addCallback(lambda _: self._after(self._piece_seconds))
        ending = reply.error or (line if isinstance(line, ChatReply) else _reply(reply, request))
        return coming.addCallback(lambda _: _come_to(ending))

    def _pieces(self, text: str) -> list[str]:
        size = self._piece_characters
        return [text[start : start + size] for start in range(0, len(text), size)]

    def _after(self, seconds: float) -> Deferred[None]:
        if not seconds:
            return succeed(None)
        if self._clock is None:
            return fail(EndpointError(self._name, "clock", "is missing: a delay needs one"))
        return deferLater(self._clock, seconds, lambda: None)


Failing = Literal["timeout", "unavailable", "refused", "rubbish"]
"""The kinds of failure that a script can name, with their errors."""

_Seconds = Annotated[float, Field(ge=0, le=3600, strict=False)]
_KIND: Final = "script"


class _Written(BaseModel):
    """The base class of all objects in a script file."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class ScriptedCall(_Written):
    """A tool call of a scripted reply."""

    tool: Annotated[str, Field(min_length=1, max_length=64)]
    arguments: dict[str, Any] | str = {}


class ScriptEntry(_Written):
    """One entry of a script.

    An entry with `when` may be used many times; one without is used once, in its order. If it has
    `fail`, its text is sent first and then the call fails.
    """

    when: Annotated[str, Field(min_length=1)] | None = None
    reply: str = ""
    tool_calls: list[ScriptedCall] = []
    fail: Failing | None = None
    delay_seconds: _Seconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_a_text(cls, value: Any) -> Any:
        return {"reply": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> "ScriptEntry":
        if not (self.reply or self.tool_calls or self.fail):
            raise ValueError("is empty: give it a reply, tool_calls or fail")
        return self


class Script(_Written):
    """A script, and the speed with which a listener gets its replies.

    With `repeat`, the replies that are used in order start again after the last one.
    """

    replies: Annotated[list[ScriptEntry], Field(min_length=1)]
    repeat: bool = False
    delay_seconds: _Seconds = 0.0
    piece_characters: Annotated[int, Field(ge=1)] = 16
    piece_seconds: _Seconds = 0.0

    @property
    def in_order(self) -> list[ScriptEntry]:
        """The entries without `when`, which are used one after another."""
        return [entry for entry in self.replies if not entry.when]

    @property
    def on_cue(self) -> list[tuple[str, ScriptEntry]]:
        """The entries with `when`, each with the words to look for."""
        return [(entry.when, entry) for entry in self.replies if entry.when]


def read_script(path: Path) -> Script:
    """Return the script in a file.

    Raises:
        FormatError: the script is not valid; the message names the place and the problem.
    """
    values = read_document(path, kind=_KIND)
    try:
        return Script.model_validate({"replies": values} if isinstance(values, list) else values)
    except ValidationError as error:
        raise FormatError(_KIND, f"{path}: {_in_words(error)}") from None


def _in_words(error: ValidationError) -> str:
    """Return the first problem of a script. Its place is counted from 1."""
    one = error.errors(include_url=False, include_input=False)[0]
    steps = [f"{step + 1}" if isinstance(step, int) else str(step) for step in one["loc"]]
    if not steps:
        return "it must be a list of replies, or an object with that list under 'replies'"
    if one["type"] == "extra_forbidden":
        return f"{' '.join(steps)}: unknown name; {_known(one['loc'])}"
    wanted = "must be a text or an object" if one["type"] == "model_type" else error_words(one)
    return f"{' '.join(steps)}: {wanted}"


def _known(place: Sequence[int | str]) -> str:
    """Return the names that are allowed where the script has an unknown name."""
    inside: type[BaseModel] = Script
    if "tool_calls" in place:
        inside = ScriptedCall
    elif "replies" in place:
        inside = ScriptEntry
    what = {Script: "a script", ScriptEntry: "a reply", ScriptedCall: "a tool call"}[inside]
    return f"{what} has {', '.join(inside.model_fields)}"


class ScriptEndedError(AssertionError):
    """A scripted model was called more often than its script has lines."""


def scripted_from(
    script: str | Path, *, name: str = "scripted", clock: Clock | None = None
) -> ScriptedModel:
    """Return a model that answers with a script.

    A script is a `.yaml` or `.json` file, or lines or a function at a dotted path. Delays use the
    `clock`, or else the reactor.

    Raises:
        EndpointError: the script is not valid.
    """
    if Path(script).suffix.lower() not in FILES:
        return ScriptedModel(
            _at_dotted_path(str(script), name), name=name, clock=_clock_or_reactor(clock)
        )
    try:
        read = read_script(Path(script))
    except FormatError as error:
        raise EndpointError(name, "script", error.message) from error
    return ScriptedModel(
        _Cued(read, name),
        name=name,
        delay_seconds=read.delay_seconds,
        piece_characters=read.piece_characters,
        piece_seconds=read.piece_seconds,
        clock=_clock_or_reactor(clock),
    )


class _Cued:
    """The lines of a script file.

    The first entry whose `when` matches is used, else the next entry in order.
    """

    def __init__(self, script: Script, name: str) -> None:
        self._on_cue, self._in_order = script.on_cue, script.in_order
        self._repeats = script.repeat
        self._name = name
        self._said = 0
        self._calls = count(1)

    def __call__(self, request: ChatRequest) -> Line:
        newest = _newest_text(request)
        for cue, entry in self._on_cue:
            if cue.casefold() in newest:
                return self._line(entry)
        entries, place = self._in_order, self._said
        if entries and self._repeats:
            place %= len(entries)
        if place >= len(entries):
            return _script_ended(self._name, request)
        self._said += 1
        return self._line(entries[place])

    def _line(self, entry: ScriptEntry) -> ScriptedReply:
        return ScriptedReply(
            text=entry.reply,
            tool_calls=tuple(map(self._call, entry.tool_calls)),
            error=_error(entry.fail, self._name) if entry.fail else None,
            delay_seconds=entry.delay_seconds,
        )

    def _call(self, act: ScriptedCall) -> ToolCall:
        given = act.arguments
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return ToolCall(id=f"scripted{next(self._calls)}", name=act.tool, arguments=text)


def _newest_text(request: ChatRequest) -> str:
    """Return the newest text of a player or a tool.

    Other messages are instructions, which must not match a `when`.
    """
    heard = (one.content for one in reversed(request.messages) if one.role in ("user", "tool"))
    return next(heard, "").casefold()


def _in_order(name: str, script: Iterable[Line]) -> Callable[[ChatRequest], Line]:
    lines = iter((script,) if isinstance(script, str) else tuple(script))
    return lambda request: next(lines, _script_ended(name, request))


def _script_ended(name: str, request: ChatRequest) -> ScriptEndedError:
    return ScriptEndedError(f"model '{name}' has no line left for {request.question!r}")


def _at_dotted_path(path: str, name: str) -> Iterable[Line] | Callable[[ChatRequest], Line]:
    module, _, wanted = path.rpartition(".")
    try:
        found: Any = getattr(import_module(module), wanted) if _DOTTED.fullmatch(path) else None
    except (ImportError, AttributeError, ValueError) as error:
        raise EndpointError(name, "script", f"'{path}' cannot be imported: {error}") from error
    if not callable(found) and not isinstance(found, list | tuple):
        wants = "the path of a .yaml or .json file, or the dotted path of lines or a function"
        raise EndpointError(name, "script", f"'{path}' is no script: it must be {wants}")
    lines: Iterable[Line] | Callable[[ChatRequest], Line] = found
    return lines


def _clock_or_reactor(clock: Clock | None) -> Clock:
    """Return the given clock, or the reactor.

    The reactor is imported late, because importing it installs it.
    """
    if clock is not None:
        return clock
    from twisted.internet import reactor

    running: Any = reactor
    timed: Clock = running
    return timed


def _come_to(ending: ChatReply | Exception) -> ChatReply:
    if isinstance(ending, Exception):
        raise ending
    return ending


def _plainly(line: str | ChatReply | Exception) -> ScriptedReply:
    if isinstance(line, Exception):
        return ScriptedReply(error=line)
    return ScriptedReply(text=line if isinstance(line, str) else line.text)


def _reply(reply: ScriptedReply, request: ChatRequest) -> ChatReply:
    return ChatReply(
        text=reply.text,
        model=request.model,
        tool_calls=reply.tool_calls,
        finish_reason="tool_calls" if reply.tool_calls else "stop",
        usage=_usage(request, reply.text),
    )


def _usage(request: ChatRequest, text: str) -> Usage:
    """Return a usage that counts words as tokens, so that equal requests have equal costs."""
    said = sum(len(message.content.split()) for message in request.messages)
    return Usage(input_tokens=said, output_tokens=len(text.split()))


def _error(failing: Failing, name: str) -> ModelError:
    """Return a new error each time, because a raised error keeps its traceback."""
    made: dict[Failing, Callable[[], ModelError]] = {
        "timeout": lambda: ModelTimeout(name, 0),
        "unavailable": lambda: ModelUnavailable(name, "the script says so"),
        "refused": lambda: ModelRefused(name, 400, "the script says so"),
        "rubbish": lambda: ModelRubbish(name, "the script says so"),
    }
    return made[failing]()
