"""Scripts: what a scripted model says, as a file that an author writes.

A YAML or JSON file holds a list of entries, or an object with that list under `replies` and how
all of them are told. An entry is a text, or an object: `reply`, `tool_calls`, `fail`,
`delay_seconds`, and `when` for one that is said whenever these words stand in the newest message.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from evennia_ai.errors import FormatError
from evennia_ai.foreign.documents import read_document
from evennia_ai.foreign.fields import own_words

Failing = Literal["timeout", "unavailable", "refused", "rubbish"]
"""How a call can fail, by the names of the errors."""

_Seconds = Annotated[float, Field(ge=0, le=3600, strict=False)]
_KIND: Final = "script"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedCall:
    """A call that a scripted reply makes; `arguments` is JSON text."""

    tool: str
    arguments: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptEntry:
    """One entry of a script; with `when` it is said each time, without it once, in order.

    One that fails is told first, as far as it has a text: the call breaks off.
    """

    text: str = ""
    acts: tuple[ScriptedCall, ...] = ()
    fail: Failing | None = None
    delay_seconds: float | None = None
    when: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What is said in order, what is said on a cue, and how a listener hears it.

    With `repeat` the replies in order begin again when they are used up.
    """

    in_order: tuple[ScriptEntry, ...] = ()
    on_cue: tuple[ScriptEntry, ...] = ()
    repeat: bool = False
    delay_seconds: float = 0.0
    piece_characters: int = 16
    piece_seconds: float = 0.0


def read_script(path: Path) -> Script:
    """The script in a file; FormatError says what is wrong with it, and where."""
    values = read_document(path, kind=_KIND)
    try:
        read = _Script.model_validate({"replies": values} if isinstance(values, list) else values)
    except ValidationError as error:
        raise FormatError(_KIND, f"{path}: {_in_words(error)}") from None
    entries = [entry.made() for entry in read.replies]
    return Script(
        in_order=tuple(entry for entry in entries if not entry.when),
        on_cue=tuple(entry for entry in entries if entry.when),
        repeat=read.repeat,
        delay_seconds=read.delay_seconds,
        piece_characters=read.piece_characters,
        piece_seconds=read.piece_seconds,
    )


class _Written(BaseModel):
    """An object of a script's file as it stands there."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Act(_Written):
    tool: Annotated[str, Field(min_length=1, max_length=64)]
    arguments: dict[str, Any] | str = {}

    def made(self) -> ScriptedCall:
        given = self.arguments
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return ScriptedCall(tool=self.tool, arguments=text)


class _Entry(_Written):
    when: Annotated[str, Field(min_length=1)] | None = None
    reply: str = ""
    tool_calls: list[_Act] = []
    fail: Failing | None = None
    delay_seconds: _Seconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_a_text(cls, value: Any) -> Any:
        return {"reply": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _says_something(self) -> "_Entry":
        if not (self.reply or self.tool_calls or self.fail):
            raise ValueError("says nothing: give it a reply, tool_calls or fail")
        return self

    def made(self) -> ScriptEntry:
        return ScriptEntry(
            text=self.reply,
            acts=tuple(act.made() for act in self.tool_calls),
            fail=self.fail,
            delay_seconds=self.delay_seconds,
            when=self.when or "",
        )


class _Script(_Written):
    replies: Annotated[list[_Entry], Field(min_length=1)]
    repeat: bool = False
    delay_seconds: _Seconds = 0.0
    piece_characters: Annotated[int, Field(ge=1)] = 16
    piece_seconds: _Seconds = 0.0


def _in_words(error: ValidationError) -> str:
    """The first thing that is wrong, with its place counted from 1 as an author does."""
    one = error.errors(include_url=False, include_input=False)[0]
    steps = [f"{step + 1}" if isinstance(step, int) else str(step) for step in one["loc"]]
    if not steps:
        return "it must be a list of replies, or an object with that list under 'replies'"
    if one["type"] == "extra_forbidden":
        return f"{' '.join(steps)}: no such word; {_known(one['loc'])}"
    wanted = "must be a text or an object" if one["type"] == "model_type" else own_words(one)
    return f"{' '.join(steps)}: {wanted}"


def _known(place: Sequence[int | str]) -> str:
    """The words that may stand where a wrong one does."""
    inside: type[BaseModel] = _Script
    if "tool_calls" in place:
        inside = _Act
    elif "replies" in place:
        inside = _Entry
    what = {_Script: "a script", _Entry: "a reply", _Act: "a tool call"}[inside]
    return f"{what} has {', '.join(inside.model_fields)}"
