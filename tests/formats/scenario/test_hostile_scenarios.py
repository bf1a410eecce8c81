"""Hostile scenarios give a result or a clear error, never another exception."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.formats.scenario import run_scenario
from tests.formats.scenario.builders import a_rich_scenario
from tests.properties import up_to

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.text(st.characters(codec=None, exclude_categories=()), max_size=12),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from(["../../etc/passwd", "\x00", "/", "{{user}}", "@@depth -1", "{% if %}"]),
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    return [path, *(found for key, item in inside for found in paths(item, (*path, key)))]


PATHS = paths(a_rich_scenario())[1:]


def replaced(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    changed = copy.deepcopy(value)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = junk
    return changed


@settings(max_examples=up_to(400), deadline=None)
@given(path=st.sampled_from(PATHS), junk=JUNK)
def test_random_values_in_any_scenario_field_give_a_result_or_a_one_line_error(
    path: tuple[Any, ...], junk: Any
) -> None:
    scenario = replaced(a_rich_scenario(), path, junk)
    try:
        result = run_scenario(scenario)
    except EvenniaAIError as error:
        assert str(error)
    else:
        json.dumps(result, allow_nan=False).encode()


@settings(max_examples=up_to(100), deadline=None)
@given(JUNK)
def test_random_value_in_place_of_a_scenario_is_refused(junk: Any) -> None:
    if junk != {}:
        with pytest.raises(EvenniaAIError):
            run_scenario(junk)


def test_scenario_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"card": deep}
    with pytest.raises(EvenniaAIError, match="nested more than 64 deep"):
        run_scenario(deep)


def test_running_a_scenario_does_not_change_its_data() -> None:
    scenario = a_rich_scenario()
    run_scenario(scenario)
    assert scenario == a_rich_scenario()
