"""Tests of the choice of instruction pages by their metadata."""

import pytest

from evennia_ai.engine.knowledge.assembly.config import TaskType
from evennia_ai.engine.knowledge.assembly.instructing import default_pages, pages_for_task
from tests.engine.knowledge.assembly.driver import a_page

SOURCE = TaskType(key="create_source", description="A source")


def a_guide(title: str, *lines: str):
    return a_page(f"Instructions:{title}", "\n".join(["---", "id: x", *lines, "---", "Text."]))


def chosen(task: str, *pages) -> list[str]:
    return [one.name.title for one in pages_for_task(pages, task, SOURCE)]


@pytest.mark.req("S4-11")
def test_default_instructions_are_ordered_by_priority_then_title():
    pages = [
        a_guide("C", "include_by_default: true"),
        a_guide("A", "include_by_default: 'yes'"),
        a_guide("B", "include_by_default: true", "priority: 5"),
        a_guide("D", "include_by_default: false"),
        a_guide("E", "include_by_default: perhaps"),
        a_guide("F"),
    ]

    assert [one.name.title for one in default_pages(pages)] == ["B", "A", "C"]


@pytest.mark.parametrize(
    ("line", "is_chosen"),
    [
        ("task_type: create_source", True),
        ("task_type: [edit_page, create_source]", True),
        ("task_type: edit_page, create_source", True),
        ("task_type: create", False),
        ("task_type: 7", False),
        ("applies_to: create_source", False),
    ],
)
def test_instruction_page_is_chosen_by_its_task_types(line, is_chosen):
    assert bool(chosen("anything", a_guide("A", line))) is is_chosen


@pytest.mark.parametrize(
    ("task", "is_chosen"),
    [
        ("write an interview", True),
        ("an INTERVIEW, please", True),
        ("two interviews", False),
        ("write a letter", False),
    ],
)
def test_tagged_instruction_page_is_chosen_when_the_task_names_a_tag(task, is_chosen):
    page = a_guide("A", "task_type: create_source", "type: style", "tags: [style, interview]")

    assert bool(chosen(task, page)) is is_chosen


def test_instruction_page_has_priority_0_when_it_is_no_number():
    pages = [
        a_guide("B", "task_type: create_source", "priority: 1"),
        a_guide("A", "task_type: create_source", "priority: high"),
    ]

    assert chosen("anything", *pages) == ["B", "A"]
