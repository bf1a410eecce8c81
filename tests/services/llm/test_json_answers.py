"""Objects are found in what models write, and nothing else is taken for one."""

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
def test_an_object_is_found(text: str) -> None:
    found = json_objects(text)
    assert (found.objects, found.around, found.problem) == ((OBJECT,), "", "")


def test_what_stands_around_an_object_is_kept_apart() -> None:
    found = json_objects('Here it is:\n```json\n{"say": "Aye."}\n```\nAnything else?')
    assert found.objects == (OBJECT,)
    assert found.around.split() == ["Here", "it", "is:", "Anything", "else?"]


def test_objects_side_by_side_are_all_found() -> None:
    assert json_objects('[{"say": "Aye."}, {"say": "No."}]').objects == (OBJECT, {"say": "No."})


@pytest.mark.parametrize("text", ["", "Aye.", "He drew { and }.", "[sighs] Well.", "```\nAye\n```"])
def test_prose_holds_no_object_and_is_left_whole(text: str) -> None:
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
def test_what_is_broken_or_over_a_limit_is_no_object(text: str) -> None:
    assert json_objects(text).problem


def test_the_inner_parts_of_a_broken_object_are_not_taken_for_the_answer() -> None:
    assert json_objects('{"acts": [{"tool": "give"}], "say": oh').objects == ()


def test_a_problem_says_where_it_is() -> None:
    problem = json_objects('{"say": "Aye." "acts": []}').problem
    told = "it is not a complete JSON object (Expecting ',' delimiter at line 1, column 16)"
    assert problem == told


def test_a_line_break_inside_a_text_is_taken() -> None:
    assert json_objects('{"say": "Aye.\nNo."}').objects == ({"say": "Aye.\nNo."},)


def test_half_a_surrogate_pair_becomes_text_that_can_be_sent() -> None:
    (found,) = json_objects('{"say": "\\ud800", "more": ["\\udfff", ["\\ud800"]]}').objects
    assert found == {"say": "?", "more": ["?", ["?"]]}


@pytest.mark.parametrize("unit", ['{"', "{", '{"a":', "[{", "```json\n", '{"a":1}', '{"a":"\\'])
def test_hostile_answers_cost_no_more_than_their_length(unit: str) -> None:
    with little_work():
        json_objects(unit * (90_000 // len(unit)))


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = json_objects(text)
    assert not (found.objects and found.problem)
