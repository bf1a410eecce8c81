"""Tests of the planner: the request to it, and the plan made from any answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.planning import (
    PlannerAnswer,
    names_in_task,
    plan_override,
    plan_request,
    read_plan,
)
from evennia_ai.engine.knowledge.assembly.requests import Failed
from tests.engine.knowledge.assembly.driver import a_plan, named

RULES = AssemblyRules()
TASK = "Write a song about Old Agda and the mill"


@pytest.mark.req("S4-09")
def test_task_plan_has_type_and_entities_of_the_planners_answer():
    found = read_plan(TASK, a_plan("create_source", "Agda Rook", "the mill"), RULES)

    assert (found.task_type.key, found.type_from) == ("create_source", "planner")
    assert found.entities == named("Agda Rook", "The mill")


def test_planner_answer_may_be_parsed_already():
    answer = PlannerAnswer(task_type="edit_page", entities=["The Mill"])

    assert read_plan(TASK, answer, RULES).task_type.key == "edit_page"


def test_planner_answer_may_have_text_around_its_json():
    text = f"Of course!\n```json\n{a_plan('edit_page')}\n```"

    assert read_plan(TASK, text, RULES).task_type.key == "edit_page"


@pytest.mark.req("S4-09", "S4-43")
@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "I would write a song.",
        "{",
        "{}",
        "[1, 2]",
        '{"task_type": 7, "entities": []}',
        '{"task_type": "query", "entities": "Agda"}',
        "{" * 100_000,
        '{"a":' * 5_000,
        Failed("the planner did not answer in time"),
        None,
        17,
    ],
)
def test_unreadable_planner_answer_gives_type_unknown_and_names_of_the_task(rubbish):
    found = read_plan(TASK, rubbish, RULES)

    assert (found.task_type.key, found.type_from) == ("unknown", "fallback")
    assert found.entities == named("Old Agda")
    assert found.bypass_reason == ""
    assert len(found.warnings) == 1


def test_task_plan_warns_with_the_reason_why_the_planner_failed():
    found = read_plan(TASK, Failed("no model is configured"), RULES)

    assert found.warnings == ("the planner's answer is not used: no model is configured",)


@pytest.mark.req("S4-43")
@pytest.mark.parametrize("writes_page", [True, False])
def test_planner_answer_with_an_unknown_type_keeps_its_entities(writes_page):
    answer = a_plan("write_opera", "Agda Rook", writes_page=writes_page)
    found = read_plan(TASK, answer, RULES)

    assert found.task_type.key == "unknown"
    assert found.entities == named("Agda Rook")
    assert found.bypass_reason == ""
    assert found.warnings == ("the planner named no known task type: 'write_opera'",)


def test_task_plan_entities_are_unique_titles_within_the_limit():
    wanted = ["the mill", "The mill", "", "a|b", "Sources:Ledger", *(f"E{n}" for n in range(20))]
    found = read_plan(TASK, a_plan("edit_page", *wanted), AssemblyRules(most_entities=3))

    assert found.entities == named("The mill", "Sources:Ledger", "E0")
    assert len(found.warnings) == 2


@pytest.mark.req("S4-04", "S4-39")
def test_task_of_type_query_gets_no_package():
    found = read_plan(TASK, a_plan("query"), RULES)

    assert found.bypass_reason == "tasks of the type query need no package"


@pytest.mark.req("S4-05", "S4-06")
@pytest.mark.parametrize("light", ["maintenance_report", "batch_operation"])
def test_maintenance_task_that_writes_no_page_gets_no_package(light):
    found = read_plan(TASK, a_plan(light, writes_page=False), RULES)

    assert found.bypass_reason == f"a {light} that creates and edits no page needs no package"


@pytest.mark.req("S4-06")
@pytest.mark.parametrize(
    "task_type", [one.key for one in RULES.task_types if one.bypass != "always"]
)
def test_task_that_writes_a_page_gets_a_package(task_type):
    assert read_plan(TASK, a_plan(task_type, writes_page=True), RULES).bypass_reason == ""


@pytest.mark.parametrize("task_type", ["create_source", "edit_page", "unknown"])
def test_planner_cannot_deny_a_package_to_a_writing_task(task_type):
    assert read_plan(TASK, a_plan(task_type, writes_page=False), RULES).bypass_reason == ""


@pytest.mark.req("S4-44")
def test_planner_request_lists_every_task_type():
    rumour = TaskType(key="create_rumour", description="Invent what people say")
    request = plan_request(TASK, AssemblyRules(task_types=(*RULES.task_types, rumour)))
    lines = request.messages[0].content.splitlines()
    enum = request.schema.model_json_schema()["properties"]["task_type"]["enum"]

    assert "- create_rumour: Invent what people say" in lines
    assert enum == [*(one.key for one in RULES.task_types), "create_rumour"]


def test_planner_request_fences_the_task():
    system, user = plan_request(TASK, RULES).messages

    assert (system.role, user.role) == ("system", "user")
    assert user.content == f"<task>\n{TASK}\n</task>"


@pytest.mark.req("S4-53")
def test_given_task_type_is_planned_without_a_model():
    found = plan_override("write on the Mill", "edit_page", RULES)

    assert (found.task_type.key, found.type_from) == ("edit_page", "override")
    assert found.entities == named("Mill")


def test_given_task_type_that_does_not_exist_becomes_unknown():
    found = plan_override(TASK, "opera", RULES)

    assert found.task_type.key == "unknown"
    assert found.warnings == ("there is no task type 'opera'; it counts as unknown",)


def test_task_given_as_a_query_gets_no_package():
    assert plan_override(TASK, "query", RULES).bypass_reason


@pytest.mark.parametrize(
    ("task", "names"),
    [
        ("Write about Agda Rook's mill", ["Agda Rook"]),
        ("write about “the drowned bell”", ["The drowned bell"]),
        ('expand "Brass"', ["Brass"]),
        ("expand [[Brass|the otter]] and [[The Weir#Flood]]", ["Brass", "The Weir"]),
        ("Write the Winter of the Broken Ice", ["The Winter of the Broken Ice"]),
        ("Change Sources:Ledger of the Mill", ["Sources:Ledger of the Mill"]),
        ("Use Create/Source now", ["Use Create/Source"]),
        ("Überarbeite Élodie und Ящик", ["Überarbeite Élodie", "Ящик"]),
        ("The mill is old. In Lowmark nobody knows The Weir", ["Lowmark", "The Weir"]),
        ("nothing [[here has a name", []),
        ("", []),
    ],
)
def test_names_in_a_task_are_linked_quoted_or_capitalised(task, names):
    assert names_in_task(task, RULES) == named(*names)


@given(st.text(max_size=400))
def test_any_task_and_planner_answer_give_a_plan(text):
    assert read_plan(text, text, RULES).task_type in RULES.task_types
