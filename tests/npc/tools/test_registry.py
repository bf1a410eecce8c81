"""The registry of tools, and its problems with tools that cannot be used."""

import json

import pytest
from django.test import override_settings
from pydantic import Field

from evennia_ai.checks import check_settings, check_tools
from evennia_ai.npc.tools.registry import ToolError, register_tool, registry_of
from evennia_ai.npc.tools.tool import Name, Tool, ToolArguments, Use

HERE = "tests.npc.tools.test_registry"


class Ring(Tool):
    name = "ring_bell"
    description = "Ring the bell of the ferry."

    class Arguments(ToolArguments):
        times: int = Field(default=1, ge=1, le=5)

    def run(self, use: Use, arguments: Arguments) -> str:
        return f"It rings {arguments.times} times."


class SecondSay(Ring):
    name = "say"


class Nameless(Ring):
    name = "Ring the bell"


class Silent(Ring):
    description = " "


class Wordy(Ring):
    description = "x" * 1001


class Unready(Tool):
    name = "unready"
    description = "Does nothing."


class Loose(Ring):
    name = "loose"

    class Arguments(ToolArguments, extra="allow"):
        pass


class Lax(Ring):
    name = "lax"

    class Arguments(ToolArguments, strict=False):
        pass


class Plain(Ring):
    name = "plain"
    Arguments = dict  # type: ignore[assignment]


class Unknowable(Ring):
    name = "unknowable"

    class Arguments(ToolArguments, arbitrary_types_allowed=True):
        what: pytest.Item


class Circle(ToolArguments):
    inner: "Circle | None" = None


class Endless(Ring):
    name = "endless"
    Arguments = Circle


class Failing(Ring):
    name = "failing"

    def __init__(self) -> None:
        raise OSError("no bell")


NOT_A_TOOL = 5
WRONG = {
    "SecondSay": "its name 'say' is taken by evennia_ai.npc.tools.speaking.Say",
    "Nameless": "its name 'Ring the bell' is not allowed",
    "Silent": "its description must be 1 to 1000 characters",
    "Wordy": "its description must be 1 to 1000 characters",
    "Unready": "it does not implement run",
    "Loose": "its Arguments must stay strict and forbid extra fields",
    "Lax": "its Arguments must stay strict and forbid extra fields",
    "Plain": "its Arguments must be a subclass of ToolArguments",
    "Unknowable": "its Arguments have no JSON schema",
    "Endless": "its Arguments have no JSON schema",
    "Failing": "creating it failed: OSError: no bell",
    "NOT_A_TOOL": "it is not a subclass of evennia_ai.npc.tools.tool.Tool",
    "Nowhere": "it cannot be imported",
}


@pytest.mark.parametrize("name", WRONG)
def test_unusable_tool_is_skipped_and_reported(name: str) -> None:
    made = registry_of((f"{HERE}.{name}",))
    (problem,) = made.problems
    assert problem.startswith(f"{HERE}.{name}: {WRONG[name]}")
    assert set(made.tools) == set(registry_of(()).tools)


def test_game_tool_is_added_to_the_shipped_tools() -> None:
    made = registry_of((f"{HERE}.Ring",))
    assert made.problems == ()
    assert isinstance(made.tools["ring_bell"].tool, Ring)
    assert "say" in made.tools


def test_tool_named_twice_is_registered_once_and_reported() -> None:
    made = registry_of((f"{HERE}.Ring", f"{HERE}.Ring"))
    assert len(made.problems) == 1
    assert "ring_bell" in made.tools


def test_schema_contains_only_what_describes_the_arguments() -> None:
    assert register_tool(Ring).spec.parameters == {
        "additionalProperties": False,
        "properties": {"times": {"default": 1, "maximum": 5, "minimum": 1, "type": "integer"}},
        "type": "object",
    }


def test_tool_without_arguments_has_an_empty_schema() -> None:
    class Bare(Ring):
        Arguments = ToolArguments

    assert register_tool(Bare).spec.parameters == {
        "additionalProperties": False,
        "properties": {},
        "type": "object",
    }


def test_schema_has_no_references_and_keeps_an_argument_named_title() -> None:
    class Person(ToolArguments):
        name: Name

    class Nested(Ring):
        class Arguments(ToolArguments):
            title: Person = Field(description="whose title")

    parameters = register_tool(Nested).spec.parameters
    assert parameters["properties"]["title"] == {
        "additionalProperties": False,
        "description": "whose title",
        "properties": {"name": {"maxLength": 80, "minLength": 1, "type": "string"}},
        "required": ["name"],
        "type": "object",
    }


def test_every_shipped_tool_has_a_valid_schema() -> None:
    for one in registry_of(()).tools.values():
        text = json.dumps(one.spec.parameters)
        assert "$ref" not in text, one.spec.name
        assert len(text) < 1000, one.spec.name


def test_shipped_names_follow_the_rule_for_names_of_tools() -> None:
    with pytest.raises(ToolError, match="beginning with a letter"):
        register_tool(Nameless)


def test_check_reports_a_wrong_class_in_the_setting_for_tools() -> None:
    with override_settings(EVENNIA_AI_TOOLS=[f"{HERE}.Ring", f"{HERE}.SecondSay"]):
        (error,) = check_tools()
    assert (error.id, error.msg.startswith("EVENNIA_AI_TOOLS: ")) == ("evennia_ai.E052", True)


def test_check_reports_a_wrong_function_in_the_setting_for_using_things() -> None:
    with override_settings(EVENNIA_AI_USE_ITEM=f"{HERE}.NOT_A_TOOL"):
        (error,) = check_tools()
    assert (error.id, error.msg) == (
        "evennia_ai.E053",
        f"EVENNIA_AI_USE_ITEM: {HERE}.NOT_A_TOOL: it is not a function.",
    )


def test_check_reports_other_wrong_settings_first() -> None:
    with override_settings(EVENNIA_AI_TOOLS="world.tools.Ring"):
        assert check_tools() == []
        assert [error.id for error in check_settings()] == ["evennia_ai.E052"]


def test_check_reports_nothing_when_all_tools_are_usable() -> None:
    assert check_tools() == []
