"""PromptComponent: its fields, their defaults, and invalid values."""

import dataclasses
from typing import get_type_hints

import pytest

from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.prompt.components import (
    STATIC_COMPONENTS,
    STATIC_IDS,
    PromptComponent,
    Scope,
)
from tests.engine.prompt.builders import a_component


@pytest.mark.req("S3-01", "S3-02", "S3-19")
def test_component_has_depth_0_and_order_100_by_default() -> None:
    defaults = {field.name: field.default for field in dataclasses.fields(PromptComponent)}
    types = get_type_hints(PromptComponent)
    assert (defaults["injection_depth"], types["injection_depth"]) == (0, int)
    assert (defaults["injection_order"], types["injection_order"]) == (100, int)
    assert a_component().placement == "ordered"


@pytest.mark.req("S3-08")
@pytest.mark.parametrize("depth", [-1, True, False, 1.0, "4", None, [4], 10**12])
def test_component_depth_that_is_not_a_whole_number_from_0_is_refused(depth: object) -> None:
    with pytest.raises(ComponentValueError, match=r"injection_depth .* whole number, 0 or more"):
        a_component(injection_depth=depth)


@pytest.mark.parametrize("order", [True, 1.5, "first", None])
def test_component_order_that_is_no_whole_number_is_refused(order: object) -> None:
    with pytest.raises(ComponentValueError, match=r"injection_order .* a whole number"):
        a_component(injection_order=order)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", -1),
        ("id", 10_000),
        ("id", True),
        ("key", "Mood Swing"),
        ("key", ""),
        ("role", "root"),
        ("placement", "top"),
        ("trust", "king"),
        ("enabled", "no"),
        ("content", None),
        ("content", "x" * 200_001),
        ("priority", 0.5),
    ],
)
def test_invalid_component_value_is_refused_with_the_name_of_the_field(
    field: str, value: object
) -> None:
    with pytest.raises(ComponentValueError) as caught:
        dataclasses.replace(a_component(), **{field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} ")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("kind", ["faction", "player"])
def test_component_with_a_scope_that_only_lorebooks_have_is_refused(kind: str) -> None:
    with pytest.raises(ComponentValueError) as caught:
        a_component(scope=Scope(kind=kind, ref="7"))
    assert str(caught.value) == (
        f"scope '{kind}:7' is not allowed: it must be of the kind game, zone, room, npc;"
        " only lorebooks have others"
    )


def test_component_with_a_depth_is_placed_in_the_history() -> None:
    assert a_component(injection_depth=3).placement == "history"
    assert a_component(injection_depth=3).changed(injection_depth=0).placement == "ordered"
    kept = a_component(injection_depth=3).changed(injection_depth=0, placement="history")
    assert kept.placement == "history"


@pytest.mark.req("S3-12")
def test_ids_of_static_components_are_those_of_the_specification() -> None:
    assert [component.id for component in STATIC_COMPONENTS] == [
        *(0, 1000, 1500, 2000, 3000, 4000, 5000, 5500, 6000, 7000)
    ]
    assert STATIC_IDS["conversation_history"] == 5000
    assert all(component.is_static for component in STATIC_COMPONENTS)
