"""The packages for one task of each type over the wiki of the demo, compared byte for byte.

The texts are in `golden/`, one file for each type. Read a changed text before you accept it.
"""

from functools import cache
from pathlib import Path

import pytest

from evennia_ai.engine.knowledge.assembly.packages import Package
from evennia_ai.engine.knowledge.pages.files import read_folder
from evennia_ai.engine.knowledge.pages.page import Page
from tests.engine.knowledge.assembly.driver import AnswersFrom, a_plan, assembled

GOLDEN = Path(__file__).parent / "golden"
HARBOUR = Path(__file__).resolve().parents[3] / "world" / "demo" / "knowledge" / "harbour"

# Map each task type to a task, and to the entities that the planner finds in it.
TASKS = {
    "create_encyclopedia_article": ("Write an article about the fare", ["The Patience"]),
    "create_source": (
        "Write an interview with Oren Vale about the night ferry",
        ["Oren Vale", "Night Ferry"],
    ),
    "edit_page": ("Change Slack Water: it lasts half an hour", ["Slack Water"]),
    "maintenance_report": (
        "Produce a report on what the letters have that no article has",
        ["Sources:Letters of Hedda Vale", "Hedda Vale"],
    ),
    "query": ("Who keeps the light, and since when, in a few words?", ["Gull Head Light"]),
    "batch_operation": (
        "Add the book year to the pages of both ferries",
        ["The Candle", "The Patience"],
    ),
    "stub_expansion": ("Expand the stub on Grey Salt", ["Grey Salt"]),
    "red_link_generation": ("Create the page Leek Show", ["Leek Show", "Pell Anstey"]),
    "unknown": ("Do something nice for the seal", ["The Bishop"]),
    "write_rumour": ("Write a rumour about the Bishop", ["The Bishop"]),
}
NEVER_SHOWN = ("Marsh's Hen", "Hedda's own sister", "draw the seating", "Strong keep", "too loud")


@cache
def the_pages() -> tuple[Page, ...]:
    return read_folder(HARBOUR).pages


def package_of(task_type: str) -> Package:
    task, entities = TASKS[task_type]
    return assembled(task, AnswersFrom(pages=the_pages(), plan=a_plan(task_type, *entities)))


@pytest.mark.parametrize("task_type", TASKS)
def test_demo_package_equals_the_golden_text_of_its_task_type(task_type: str) -> None:
    assert package_of(task_type).render() == (GOLDEN / f"{task_type}.txt").read_text("utf-8")


def test_demo_package_is_empty_for_a_question() -> None:
    package = package_of("query")
    assert (package.bypassed, package.render()) == (True, "")


def test_task_type_of_the_demo_config_page_adds_its_instructions() -> None:
    package = package_of("write_rumour")
    assert package.task_type == "write_rumour"
    assert "Instructions:Create/Rumour" in [page.heading for page in package.pages]


@pytest.mark.parametrize("task_type", TASKS)
def test_demo_package_has_no_private_talk_of_editors(task_type: str) -> None:
    text = package_of(task_type).render()
    assert [one for one in NEVER_SHOWN if one in text] == []


def test_demo_talk_pages_contain_texts_that_packages_leave_out() -> None:
    told = "\n".join(page.body for page in the_pages() if page.name.namespace == "Talk")
    assert [one for one in NEVER_SHOWN if one not in told] == []
