"""Arguments: what a model wrote for a tool, read with limits and checked by its types.

Whatever is wrong becomes one short text for the model, which names the argument and what it must
be. Nothing is guessed: "5" is no number. The JSON schema of the arguments is part of every prompt,
so it is small and the same bytes each time, without titles and references.
"""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.errors import EvenniaAIError, FormatError
from evennia_ai.game.senses.text import one_line
from evennia_ai.game.tools.tool import Tool, ToolArguments

MAX_CHARACTERS: Final = 8_000
MAX_NESTING: Final = 12
MOST_TOLD: Final = 3
"""Wrong arguments that are told of one call."""

UNREADABLE: Final = "The arguments are not one JSON object."

_MAX_PATH: Final = 60
_MAX_PROBLEM: Final = 160
_BRACKETS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


class WrongArgumentsError(EvenniaAIError):
    """A call whose arguments are not what the tool takes; the text is for the model."""


def arguments_of(tool: Tool, text: str) -> ToolArguments:
    """The arguments in `text`; WrongArgumentsError says what is wrong with them."""
    given = _checked_object(text)
    try:
        return tool.Arguments.model_validate_json(given)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":  # halves of surrogate pairs and such
            raise WrongArgumentsError(UNREADABLE) from error
        wrong = [_told(tool, detail) for detail in error.errors(include_url=False)]
        more = f" and {len(wrong) - MOST_TOLD} more" if len(wrong) > MOST_TOLD else ""
        raise WrongArgumentsError(
            f"{tool.name} was not done: {'; '.join(wrong[:MOST_TOLD])}{more}."
        ) from error


def is_object(text: str) -> bool:
    """Whether `text` is one JSON object within the limits, as a later request may show it."""
    try:
        _checked_object(text)
    except WrongArgumentsError:
        return False
    return True


def _checked_object(text: str) -> str:
    """`text`, "{}" for an empty one; WrongArgumentsError where it is no JSON object to be read."""
    text = text.strip() or "{}"
    if len(text) > MAX_CHARACTERS:
        raise WrongArgumentsError(f"The arguments are over {MAX_CHARACTERS} characters long.")
    if _nesting(text) > MAX_NESTING:
        raise WrongArgumentsError("The arguments are nested too deeply.")
    try:
        found = json.loads(
            text, object_pairs_hook=_without_doubles, parse_constant=_no_number, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise WrongArgumentsError(UNREADABLE) from error
    if not isinstance(found, dict):
        raise WrongArgumentsError("The arguments must be a JSON object.")
    return text


def _nesting(text: str) -> int:
    """How deep brackets stand in one another, those inside of texts among them."""
    deepest = depth = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name stands there twice")
    return dict(pairs)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits} is larger than any number")
    return number


def _told(tool: Tool, detail: ErrorDetails) -> str:
    """One thing that is wrong, as `'to' is missing`."""
    path = one_line(".".join(map(str, detail["loc"])))[:_MAX_PATH]
    if detail["type"] == "missing":
        return f"'{path}' is missing"
    if detail["type"] == "extra_forbidden":
        known = ", ".join(tool.Arguments.model_fields) or "none"
        return f"there is no '{path}' (arguments: {known})"
    problem = one_line(detail["msg"])[:_MAX_PROBLEM]
    return f"'{path}': {problem}" if path else problem


MOST_NESTED: Final = 12

_SAYS_NOTHING: Final = frozenset({"title", "$defs", "discriminator"})
_REFERENCE: Final = "#/$defs/"


def schema_of(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema of `arguments`; FormatError where it has none without references in circles."""
    whole = arguments.model_json_schema()
    made = _compact(whole, definitions=whole.get("$defs", {}), nesting=0)
    made.pop("description", None)  # that of the tool says it
    return {**made, "properties": made.get("properties", {})}


def _compact(schema: Mapping[str, Any], *, definitions: Mapping[str, Any], nesting: int) -> Any:
    """A schema with its references put in."""
    if nesting > MOST_NESTED:
        raise FormatError("arguments", "refer to themselves or are nested too deeply")
    referred = schema.get("$ref")
    if isinstance(referred, str):
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[referred.removeprefix(_REFERENCE)], **rest}
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":  # its keys are names of arguments, which may be any word
            made[key] = {
                name: _compact(one, definitions=definitions, nesting=nesting + 1)
                for name, one in value.items()
            }
        elif key not in _SAYS_NOTHING:
            made[key] = _compact_value(value, definitions=definitions, nesting=nesting + 1)
    return made


def _compact_value(value: Any, *, definitions: Mapping[str, Any], nesting: int) -> Any:
    if isinstance(value, Mapping):
        return _compact(value, definitions=definitions, nesting=nesting)
    if isinstance(value, list):
        return [_compact_value(v, definitions=definitions, nesting=nesting) for v in value]
    return value
