"""The packages for one task of each type over a small wiki, compared byte for byte.

The texts are in `golden/`, one file for each type. Read a changed text before you accept it.
"""

import json
from pathlib import Path

import pytest

from evennia_ai.engine.knowledge.assembly.config import TASK_TYPES, AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import Package
from tests.engine.knowledge.assembly.driver import (
    AnArticle,
    AnswersFrom,
    a_plan,
    assembled,
    the_wiki,
)

GOLDEN = Path(__file__).parent / "golden"
# Map each task type to a task, and to the entities that the planner finds in it.
TASKS = {
    "create_encyclopedia_article": ("Write an article on the reeve of Lowmark", ["The Reeve"]),
    "create_source": ("Write an interview with Agda Rook on the weir", ["Agda Rook", "The Weir"]),
    "edit_page": ("Change The Mill: it has two wheels", ["The Mill"]),
    "maintenance_report": ("Produce a report on pages without sources", ["The Otter Fair"]),
    "query": ("The weir, and what became of it", ["The Weir"]),
    "batch_operation": ("Add the flood to all pages on the river", ["The Weir", "The Mill"]),
    "stub_expansion": ("Expand the stub on Brass", ["Brass"]),
    "red_link_generation": ("Create the page The Reeve", ["The Reeve", "Agda Rook"]),
    "unknown": ("Do something nice for the miller", ["The Miller"]),
}
WIKIPEDIA = {
    "The Weir": AnArticle(title="Weir", text="A weir is a low barrier across a river."),
    "Brass": AnArticle(title="Brass", text="Brass is an alloy of copper and zinc."),
}


def package_of(task_type: str) -> Package:
    task, entities = TASKS[task_type]
    answers = AnswersFrom(pages=the_wiki(), plan=a_plan(task_type, *entities), articles=WIKIPEDIA)
    return assembled(task, answers, rules=AssemblyRules(wikipedia=task_type == "create_source"))


@pytest.mark.req("S4-23", "S4-25", "S4-26", "S4-27", "S4-28", "S4-29", "S4-30")
@pytest.mark.parametrize(
    "task_type",
    [
        pytest.param("create_encyclopedia_article", marks=pytest.mark.req("S4-35", "S4-34")),
        pytest.param(
            "create_source",
            marks=pytest.mark.req("S4-36", "S4-11", "S4-31", "S4-32", "S4-33"),
        ),
        pytest.param("edit_page", marks=pytest.mark.req("S4-37")),
        pytest.param("maintenance_report", marks=pytest.mark.req("S4-38")),
        pytest.param("query", marks=pytest.mark.req("S4-39")),
        pytest.param("batch_operation", marks=pytest.mark.req("S4-40")),
        pytest.param("stub_expansion", marks=pytest.mark.req("S4-41")),
        pytest.param("red_link_generation", marks=pytest.mark.req("S4-42")),
        pytest.param("unknown", marks=pytest.mark.req("S4-43")),
    ],
)
def test_package_equals_the_golden_text_of_its_task_type(task_type):
    assert package_of(task_type).render() == (GOLDEN / f"{task_type}.txt").read_text("utf-8")


def test_golden_packages_cover_every_task_type():
    assert list(TASKS) == [one.key for one in TASK_TYPES]


@pytest.mark.parametrize("task_type", TASKS)
def test_package_has_the_task_type_that_the_planner_gave(task_type):
    assert package_of(task_type).task_type == task_type


def test_package_record_matches_the_golden_file():
    told = json.dumps(package_of("create_source").context_meta(), ensure_ascii=False, indent=1)

    assert told + "\n" == (GOLDEN / "create_source.meta.json").read_text("utf-8")
