"""Schemas: the JSON schema of a tool's arguments, small and the same bytes each time.

It is part of every prompt, so there is nothing in it that says nothing: no titles, no references.
"""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from evennia_ai.errors import FormatError

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
