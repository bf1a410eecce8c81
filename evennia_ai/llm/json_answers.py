"""The JSON objects in what a model wrote: bare, in a fence, or with talk around them.

Nothing is guessed, repaired or evaluated: what sets out as an object is one within the limits, or
the whole is broken. Going on behind a broken one would take its inner parts for the answer. A
hostile text costs no more than a few walks over its length.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from evennia_ai.llm.reasoning import without_reasoning

MAX_JSON_CHARACTERS: Final = 100_000
MAX_WRITTEN_CHARACTERS: Final = 4 * MAX_JSON_CHARACTERS
"""With the hidden reasoning, which is looked for only within this."""

MAX_NESTING: Final = 32
MAX_NUMBER: Final = 10**15
MAX_OBJECTS: Final = 16

# Where an object begins: a brace before its first key or its end.
_OBJECT: Final = re.compile(r"\{(?=\s*[\"}])")
_FENCE: Final = re.compile(r"^[ \t]*```[ \t]*(?:json)?[ \t]*$\n?", re.MULTILINE | re.IGNORECASE)
_BRACE_FIRST: Final = re.compile(r"\s*(?:```[ \t]*\w{0,20}\s*)?(?:\[\s*)?\{")
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObjects:
    """What of a text is JSON objects, in order, and what stands `around` them.

    `problem` says why something that sets out as an object is none, "" where all is well.
    """

    objects: tuple[dict[str, Any], ...] = ()
    around: str = ""
    problem: str = ""


def json_objects(text: str) -> JsonObjects:
    """The objects side by side in `text`, its hidden reasoning apart."""
    if len(text) > MAX_WRITTEN_CHARACTERS:
        return JsonObjects(problem=f"it has more than {MAX_WRITTEN_CHARACTERS} characters")
    text = without_reasoning(text)
    if len(text) > MAX_JSON_CHARACTERS:
        return JsonObjects(problem=f"it has more than {MAX_JSON_CHARACTERS} characters")
    objects: list[dict[str, Any]] = []
    around: list[str] = []
    at = 0
    while found := _OBJECT.search(text, at):
        around.append(text[at : found.start()])
        try:
            value, at = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError) as error:
            return JsonObjects(around="".join(around), problem=_why_no_object(error))
        if problem := _over_a_limit(value) or _too_many(objects):
            return JsonObjects(around="".join(around), problem=problem)
        objects.append(value)
    around.append(text[at:])
    if not objects and _BRACE_FIRST.match(text):
        return JsonObjects(problem="it begins with a brace and is no JSON object")
    outside = _FENCE.sub("", "".join(around)) if objects else "".join(around)
    return JsonObjects(objects=tuple(objects), around=outside.strip())


def _over_a_limit(value: object) -> str:
    """Which limit a value is over, "" where it is over none."""
    waiting = [(value, 1)]
    while waiting:
        one, depth = waiting.pop()
        if depth > MAX_NESTING:
            return f"it is nested more than {MAX_NESTING} deep"
        if isinstance(one, dict | list):
            inner = one.values() if isinstance(one, dict) else one
            waiting.extend((member, depth + 1) for member in inner)
        elif isinstance(one, int | float) and abs(one) > MAX_NUMBER:
            return f"it has a number over {MAX_NUMBER}"
    return ""


def _too_many(objects: list[dict[str, Any]]) -> str:
    return f"it has more than {MAX_OBJECTS} objects" if len(objects) >= MAX_OBJECTS else ""


def _why_no_object(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        where = f"line {error.lineno}, column {error.colno}"
        return f"it is no whole JSON object ({error.msg.removesuffix(' at')} at {where})"
    if isinstance(error, RecursionError):
        return f"it is nested more than {MAX_NESTING} deep"
    return f"it is no JSON object ({error})"


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's members, as text that can be sent and stored."""
    return {_sendable(name): _sendable(value) for name, value in pairs}


def _sendable(value: Any) -> Any:
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("?", value)
    if isinstance(value, list):
        return [_sendable(one) if isinstance(one, str | list) else one for one in value]
    return value


def _no_number(written_as: str) -> NoReturn:
    raise ValueError(f"{written_as} is no number")


# Small models write a line break inside a text as it is: `strict=False` takes it.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_no_number, strict=False
)
