"""Test that JSON objects are found in what models write, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.services.llm.structured import MAX_JSON_CHARACTERS, MAX_OBJECTS, json_objects
from tests.effort import little_work

OBJECT = {"say": "Aye."}


@pytest.mark.parametrize(
    "text",
    [
        '{"say": "Aye."}',
        ' \n{ "say" : "Aye." }\n',
        '```json\n{"say": "Aye."}\n```',
        '```\n{"say": "Aye."}\n```',
        '<think>{"say": "No."} or so?</think>{"say": "Aye."}',
    ],
)
def test_json_object_in_a_text_is_found(text: str) -> None:
    found = json_objects(text)
    assert (found.objects, found.around, found.problem) == ((OBJECT,), "", "")


def test_text_around_a_json_object_is_kept_separately() -> None:
    found = json_objects('Here it is:\n```json\n{"say": "Aye."}\n```\nAnything else?')
    assert found.objects == (OBJECT,)
    assert found.around.split() == ["Here", "it", "is:", "Anything", "else?"]


def test_adjacent_json_objects_are_all_found() -> None:
    assert json_objects('[{"say": "Aye."}, {"say": "No."}]').objects == (OBJECT, {"say": "No."})


@pytest.mark.parametrize("text", ["", "Aye.", "He drew { and }.", "[sighs] Well.", "```\nAye\n```"])
def test_prose_has_no_json_object_and_stays_whole(text: str) -> None:
    found = json_objects(text)
    assert (found.objects, found.around, found.problem) == ((), text, "")


@pytest.mark.parametrize(
    "text",
    [
        '{"say": "Aye',
        '{"say": "Aye.", "acts": [{"tool": "look", "arguments": {}}',
        '{"say": NaN}',
        "{'say': 'Aye.'}",
        "{say: Aye}",
        '[{"say": ',
        "```json\n{ ",
        '{"a": 1e400}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": 10000000000000001}',
        '{"a":' * 200 + "1" + "}" * 200,
        '{"a":' + "[" * 100_000,
        '{"a":' * 30_000,
        '{"a": 1}' * (MAX_OBJECTS + 1),
        " " * (MAX_JSON_CHARACTERS + 1),
    ],
)
def test_broken_or_oversized_json_object_is_refused(text: str) -> None:
    assert json_objects(text).problem


def test_inner_parts_of_a_broken_object_are_not_an_answer() -> None:
    assert json_objects('{"acts": [{"tool": "give"}], "say": oh').objects == ()


def test_json_problem_names_its_place() -> None:
    problem = json_objects('{"say": "Aye." "acts": []}').problem
    told = "it is not a complete JSON object (Expecting ',' delimiter at line 1, column 16)"
    assert problem == told


def test_line_break_inside_a_json_text_is_accepted() -> None:
    assert json_objects('{"say": "Aye.\nNo."}').objects == ({"say": "Aye.\nNo."},)


def test_lone_surrogate_in_json_becomes_sendable_text() -> None:
    (found,) = json_objects('{"say": "\\ud800", "more": ["\\udfff", ["\\ud800"]]}').objects
    assert found == {"say": "?", "more": ["?", ["?"]]}


@pytest.mark.parametrize("unit", ['{"', "{", '{"a":', "[{", "```json\n", '{"a":1}', '{"a":"\\'])
def test_hostile_json_costs_linear_time(unit: str) -> None:
    with little_work():
        json_objects(unit * (90_000 // len(unit)))


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_as_json_without_an_exception(text: str) -> None:
    found = json_objects(text)
    assert not (found.objects and found.problem)
