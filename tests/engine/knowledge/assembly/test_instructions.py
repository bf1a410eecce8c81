"""Which instruction pages a task needs, by what the pages say of themselves."""

import pytest

from evennia_ai.engine.knowledge.assembly.config import TaskType
from evennia_ai.engine.knowledge.assembly.instructing import included_by_default, of_task
from tests.engine.knowledge.assembly.driver import a_page

SOURCE = TaskType(key="create_source", description="A source")


def a_guide(title: str, *lines: str):
    return a_page(f"Instructions:{title}", "\n".join(["---", "id: x", *lines, "---", "Text."]))


def chosen(task: str, *pages) -> list[str]:
    return [one.name.title for one in of_task(pages, task, SOURCE)]


@pytest.mark.req("S4-11")
def test_pages_that_are_included_by_default_come_by_priority_then_by_title():
    pages = [
        a_guide("C", "include_by_default: true"),
        a_guide("A", "include_by_default: 'yes'"),
        a_guide("B", "include_by_default: true", "priority: 5"),
        a_guide("D", "include_by_default: false"),
        a_guide("E", "include_by_default: perhaps"),
        a_guide("F"),
    ]

    assert [one.name.title for one in included_by_default(pages)] == ["B", "A", "C"]


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
def test_a_page_is_chosen_by_the_task_types_it_names(line, is_chosen):
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
def test_a_page_with_tags_of_its_own_is_chosen_where_the_task_names_one(task, is_chosen):
    page = a_guide("A", "task_type: create_source", "type: style", "tags: [style, interview]")

    assert bool(chosen(task, page)) is is_chosen


def test_a_priority_that_is_no_number_is_none():
    pages = [
        a_guide("B", "task_type: create_source", "priority: 1"),
        a_guide("A", "task_type: create_source", "priority: high"),
    ]

    assert chosen("anything", *pages) == ["B", "A"]
