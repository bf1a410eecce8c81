"""Values as JSON."""

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from evennia_ai.engine.text.plain_values import plain_value


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    name: str
    _memo: dict[str, int] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"room {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quay(Room):
    boats: tuple[Room, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.boats


class Pair(NamedTuple):
    first: int
    second: Room


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        ({1: (2, "a")}, {"1": [2, "a"]}),
        (frozenset({"b", "a"}), ["a", "b"]),
        (Room(name="x", _memo={"a": 1}), {"name": "x", "label": "room x"}),
        (Pair(1, Room(name="x")), [1, {"name": "x", "label": "room x"}]),
        (
            Quay(name="q", boats=(Room(name="b"),)),
            {
                "name": "q",
                "boats": [{"name": "b", "label": "room b"}],
                "label": "room q",
                "is_empty": False,
            },
        ),
    ],
)
def test_value_becomes_json_with_its_fields_and_properties(value: Any, plain: Any) -> None:
    assert plain_value(value) == plain
    assert json.loads(json.dumps(plain_value(value))) == plain
