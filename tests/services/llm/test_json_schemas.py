"""A schema is written out so that any server can take it."""

from typing import Literal

import pytest
from pydantic import BaseModel

from evennia_ai.engine.errors import FormatError
from evennia_ai.services.llm.structured import strict_schema


class Item(BaseModel):
    name: str
    count: int = 1


class Title(BaseModel):
    """A form whose members are named like keywords of a schema."""

    title: str = "none"
    default: Literal["a", "b"] = "a"


class Order(BaseModel):
    items: list[Item]
    first: Item | None = None
    prices: dict[str, int] = {}


class Tree(BaseModel):
    below: "list[Tree]" = []


def test_references_are_written_out() -> None:
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


def test_an_object_without_members_allows_none() -> None:
    assert strict_schema({"type": "object"}, origin="none") == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_a_schema_is_strict_after_one_walk() -> None:
    made = strict_schema(Order.model_json_schema(), origin="Order")
    assert strict_schema(made, origin="Order") == made


def test_a_form_that_holds_itself_is_refused() -> None:
    with pytest.raises(FormatError, match="Tree: its schema refers to itself"):
        strict_schema(Tree.model_json_schema(), origin="Tree")


def test_a_reference_to_nothing_is_refused() -> None:
    with pytest.raises(FormatError, match="look: its schema refers to nothing: #/elsewhere/x"):
        strict_schema({"$ref": "#/elsewhere/x"}, origin="look")
