"""Test that a schema is rewritten so that every server accepts it."""

from typing import Literal

import pytest
from pydantic import BaseModel

from evennia_ai.engine.errors import FormatError
from evennia_ai.services.llm.structured import strict_schema


class Item(BaseModel):
    name: str
    count: int = 1


class Title(BaseModel):
    """A form whose members have names of schema keywords."""

    title: str = "none"
    default: Literal["a", "b"] = "a"


class Order(BaseModel):
    items: list[Item]
    first: Item | None = None
    prices: dict[str, int] = {}


class Tree(BaseModel):
    below: "list[Tree]" = []


def test_schema_references_are_resolved() -> None:
    made = strict_schema(Order.model_json_schema(), origin="Order")
    item = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
        "required": ["name", "count"],
        "additionalProperties": False,
    }
    assert made == {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": item},
            "first": {"anyOf": [item, {"type": "null"}]},
            "prices": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["items", "first", "prices"],
        "additionalProperties": False,
    }


def test_members_named_like_keywords_are_kept() -> None:
    made = strict_schema(Title.model_json_schema(), origin="Title")
    assert made["properties"] == {
        "title": {"type": "string"},
        "default": {"type": "string", "enum": ["a", "b"]},
    }


def test_strict_schema_of_an_object_without_members_forbids_all_members() -> None:
    assert strict_schema({"type": "object"}, origin="none") == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_strict_schema_is_unchanged_by_a_second_pass() -> None:
    made = strict_schema(Order.model_json_schema(), origin="Order")
    assert strict_schema(made, origin="Order") == made


def test_recursive_schema_is_refused() -> None:
    with pytest.raises(FormatError, match="Tree: its schema refers to itself"):
        strict_schema(Tree.model_json_schema(), origin="Tree")


def test_schema_reference_to_nothing_is_refused() -> None:
    with pytest.raises(FormatError, match="look: its schema refers to nothing: #/elsewhere/x"):
        strict_schema({"$ref": "#/elsewhere/x"}, origin="look")
