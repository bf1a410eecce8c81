"""Arguments that a model wrote: a tool accepts only its own, and the model reads what is wrong."""

import re
from typing import Any

import pytest

from evennia_ai.npc.tools.registry import registry_of
from tests.npc.tools.acting import a_call, a_toolbox

ARGUMENTS = [
    (name, argument)
    for name, one in registry_of(()).tools.items()
    for argument in one.tool.Arguments.model_fields
]

WRONG = {
    "no JSON": ("hello", "The arguments are not one JSON object."),
    "cut off": ('{"text": "hello', "The arguments are not one JSON object."),
    "more than one": ('{"text": "a"} {"text": "b"}', "The arguments are not one JSON object."),
    "a list": ('["a"]', "The arguments must be a JSON object."),
    "nothing": ("null", "The arguments must be a JSON object."),
    "a name twice": ('{"text": "a", "text": "b"}', "The arguments are not one JSON object."),
    "a number over all": ('{"text": 1e999}', "The arguments are not one JSON object."),
    "no number": ('{"text": NaN}', "The arguments are not one JSON object."),
    "half a pair": ('{"text": "\\ud800"}', "The arguments are not one JSON object."),
    "missing": ("{}", "say was not done: 'text' is missing."),
    "nothing said": (
        '{"text": "  "}',
        "say was not done: 'text': String should have at least 1 character.",
    ),
    "a number": ('{"text": 5}', "say was not done: 'text': Input should be a valid string."),
    "an object": (
        '{"text": {"a": 1}}',
        "say was not done: 'text': Input should be a valid string.",
    ),
    "one too many": (
        '{"text": "a", "loud": true}',
        "say was not done: there is no 'loud' (arguments: text).",
    ),
    "too long": (
        '{"text": "' + "a" * 6000 + '"}',
        "say was not done: 'text': String should have at most 600 characters.",
    ),
    "far too long": (
        '{"text": "' + "a" * 9000 + '"}',
        "The arguments are over 8000 characters long.",
    ),
    "deep": ("[" * 3000 + "]" * 3000, "The arguments are nested too deeply."),
}


@pytest.mark.parametrize("title", WRONG)
def test_wrong_arguments_give_an_error_that_names_them(stage: Any, title: str) -> None:
    text, told = WRONG[title]
    assert a_toolbox(stage, "say").find(a_call("say", text)).text == told


def test_missing_arguments_count_as_an_empty_object(stage: Any) -> None:
    assert a_toolbox(stage, "look").find(a_call("look", "")).recorded.arguments == "{}"


def test_name_of_a_wrong_argument_is_shown_short_and_on_one_line(stage: Any) -> None:
    text = '{"text": "a", "x\\n\\u202e' + "y" * 300 + '": 1}'
    told = a_toolbox(stage, "say").find(a_call("say", text)).text
    assert told == f"say was not done: there is no 'x {'y' * 58}' (arguments: text)."


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_every_argument_of_every_tool_accepts_only_its_own_type(
    stage: Any, name: str, argument: str
) -> None:
    for value in ({"5": 5}, [["5"]], True, 5.5):
        wrong = a_toolbox(stage, name).find(a_call(name, {argument: value}))
        assert re.search(rf"'{argument}(\.0)?': Input should be a valid", wrong.text)
