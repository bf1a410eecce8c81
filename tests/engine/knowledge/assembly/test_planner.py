"""The planner is asked with all types, and whatever it answers a plan comes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules, TaskType
from evennia_ai.engine.knowledge.assembly.planning import (
    PlannerAnswer,
    named_in,
    overridden,
    plan_request,
    planned,
)
from evennia_ai.engine.knowledge.assembly.requests import Failed
from tests.engine.knowledge.assembly.driver import a_plan, named

RULES = AssemblyRules()
TASK = "Write a song about Old Agda and the mill"


@pytest.mark.req("S4-09")
def test_a_plan_has_the_type_and_the_entities_that_the_planner_names():
    found = planned(TASK, a_plan("create_source", "Agda Rook", "the mill"), RULES)

    assert (found.task_type.key, found.type_from) == ("create_source", "planner")
    assert found.entities == named("Agda Rook", "The mill")


def test_an_answer_that_was_read_already_is_taken():
    answer = PlannerAnswer(task_type="edit_page", entities=["The Mill"])

    assert planned(TASK, answer, RULES).task_type.key == "edit_page"


def test_json_with_talk_around_it_is_read():
    text = f"Of course!\n```json\n{a_plan('edit_page')}\n```"

    assert planned(TASK, text, RULES).task_type.key == "edit_page"


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
def test_rubbish_is_an_unknown_task_about_the_names_in_its_words(rubbish):
    found = planned(TASK, rubbish, RULES)

    assert (found.task_type.key, found.type_from) == ("unknown", "fallback")
    assert found.entities == named("Old Agda")
    assert found.bypass_reason == ""
    assert len(found.warnings) == 1


def test_a_failure_is_told_in_its_own_words():
    found = planned(TASK, Failed("no model is configured"), RULES)

    assert found.warnings == ("the planner's answer is not used: no model is configured",)


@pytest.mark.req("S4-43")
@pytest.mark.parametrize("writes_page", [True, False])
def test_a_type_nobody_knows_is_unknown_and_its_entities_stay(writes_page):
    answer = a_plan("write_opera", "Agda Rook", writes_page=writes_page)
    found = planned(TASK, answer, RULES)

    assert found.task_type.key == "unknown"
    assert found.entities == named("Agda Rook")
    assert found.bypass_reason == ""
    assert found.warnings == ("the planner named no known task type: 'write_opera'",)


def test_entities_are_titles_each_once_and_not_too_many():
    wanted = ["the mill", "The mill", "", "a|b", "Sources:Ledger", *(f"E{n}" for n in range(20))]
    found = planned(TASK, a_plan("edit_page", *wanted), AssemblyRules(most_entities=3))

    assert found.entities == named("The mill", "Sources:Ledger", "E0")
    assert len(found.warnings) == 2


@pytest.mark.req("S4-04", "S4-39")
def test_a_query_is_bypassed():
    found = planned(TASK, a_plan("query"), RULES)

    assert found.bypass_reason == "tasks of the type query need no package"


@pytest.mark.req("S4-05", "S4-06")
@pytest.mark.parametrize("light", ["maintenance_report", "batch_operation"])
def test_maintenance_that_writes_no_page_is_bypassed(light):
    found = planned(TASK, a_plan(light, writes_page=False), RULES)

    assert found.bypass_reason == f"a {light} that creates and edits no page needs no package"


@pytest.mark.req("S4-06")
@pytest.mark.parametrize(
    "task_type", [one.key for one in RULES.task_types if one.bypass != "always"]
)
def test_a_task_that_writes_a_page_is_never_bypassed(task_type):
    assert planned(TASK, a_plan(task_type, writes_page=True), RULES).bypass_reason == ""


@pytest.mark.parametrize("task_type", ["create_source", "edit_page", "unknown"])
def test_the_planner_cannot_talk_a_writing_type_out_of_its_package(task_type):
    assert planned(TASK, a_plan(task_type, writes_page=False), RULES).bypass_reason == ""


@pytest.mark.req("S4-44")
def test_the_planner_reads_every_type_that_the_rules_know():
    rumour = TaskType(key="create_rumour", description="Invent what people say")
    request = plan_request(TASK, AssemblyRules(task_types=(*RULES.task_types, rumour)))
    lines = request.messages[0].content.splitlines()
    enum = request.schema.model_json_schema()["properties"]["task_type"]["enum"]

    assert "- create_rumour: Invent what people say" in lines
    assert enum == [*(one.key for one in RULES.task_types), "create_rumour"]


def test_the_task_is_fenced_as_data_in_a_message_of_its_own():
    system, user = plan_request(TASK, RULES).messages

    assert (system.role, user.role) == ("system", "user")
    assert user.content == f"<task>\n{TASK}\n</task>"


@pytest.mark.req("S4-53")
def test_a_type_that_was_given_needs_no_planner():
    found = overridden("write on the Mill", "edit_page", RULES)

    assert (found.task_type.key, found.type_from) == ("edit_page", "override")
    assert found.entities == named("Mill")


def test_a_given_type_that_nobody_knows_is_unknown():
    found = overridden(TASK, "opera", RULES)

    assert found.task_type.key == "unknown"
    assert found.warnings == ("there is no task type 'opera'; it counts as unknown",)


def test_a_given_query_is_bypassed_as_any_other():
    assert overridden(TASK, "query", RULES).bypass_reason


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
def test_names_in_a_task_are_linked_quoted_or_capital(task, names):
    assert named_in(task, RULES) == named(*names)


@given(st.text(max_size=400))
def test_any_task_and_any_answer_make_a_plan(text):
    assert planned(text, text, RULES).task_type in RULES.task_types
