"""JSON schemas as the least able server takes them: nothing referred to, nothing left open.

Small servers make a grammar of a schema and know neither `$ref` nor defaults; large ones want
every member named as required and no other allowed.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.errors import FormatError

MAX_SCHEMA_NESTING: Final = 24

# What says nothing to a model, or what strict servers refuse.
_LEFT_OUT: Final = frozenset({"$defs", "$schema", "definitions", "default", "title"})
_PREFIXES: Final = ("#/$defs/", "#/definitions/")
# Keywords whose value is one schema, several by name, or a list of them.
_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_LISTED: Final = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})


def strict_schema(schema: Mapping[str, Any], *, origin: str) -> dict[str, Any]:
    """`schema` with its references written out, its members required and no others allowed.

    A member that may be left out becomes one that must be written: its default is not sent.
    FormatError names `origin` where the schema refers to itself or to nothing.
    """
    named = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _Strict(named, origin).of(schema, 0)


class _Strict:
    """Rewrites the schemas of one document; `named` are those that it can refer to."""

    def __init__(self, named: Mapping[str, Any], origin: str) -> None:
        self._named = named
        self._origin = origin

    def of(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > MAX_SCHEMA_NESTING:
            raise FormatError(
                "schema",
                f"{self._origin}: its schema refers to itself or is nested more than"
                f" {MAX_SCHEMA_NESTING} deep; make the form flatter",
            )
        if "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self.of({**self._referred(schema["$ref"]), **beside}, depth + 1)
        made = {
            key: self._value(key, value, depth + 1)
            for key, value in schema.items()
            if key not in _LEFT_OUT
        }
        return _closed(made) if "properties" in made or _is_object(made) else made

    def _value(self, key: str, value: Any, depth: int) -> Any:
        if key == "properties":
            return {name: self.of(one, depth) for name, one in value.items()}
        if key in _ONE and isinstance(value, Mapping):
            return self.of(value, depth)
        if key in _LISTED:
            return [self.of(one, depth) for one in value]
        return value

    def _referred(self, reference: str) -> Mapping[str, Any]:
        for prefix in _PREFIXES:
            name = reference.removeprefix(prefix)
            if name != reference and isinstance(self._named.get(name), Mapping):
                found: Mapping[str, Any] = self._named[name]
                return found
        raise FormatError("schema", f"{self._origin}: its schema refers to nothing: {reference}")


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and "additionalProperties" not in schema


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    members = schema.get("properties", {})
    return {
        **schema,
        "type": "object",
        "properties": members,
        "required": list(members),
        "additionalProperties": False,
    }
