"""Tests of the default limits of a package, without a config page."""

import pytest

from evennia_ai.engine.knowledge.assembly.requests import AskPlanner, PageSearch
from evennia_ai.engine.knowledge.pages.page import Page
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.knowledge.assembly.driver import AnswersFrom, a_page, a_plan, assembled

TASK = "Write an article about the fair"
PLACES = [f"Place {number:02}" for number in range(30)]


def answers(pages: list[Page], *entities: str) -> AnswersFrom:
    return AnswersFrom(pages=pages, plan=a_plan("edit_page", *entities))


@pytest.mark.req("S4-09")
def test_task_plan_has_at_most_eight_entities():
    answered = answers([], *PLACES)
    package = assembled(TASK, answered)
    (asked,) = [one for one in answered.asked if isinstance(one, AskPlanner)]

    assert package.entities == tuple(PLACES[:8])
    assert "at most 8." in asked.messages[0].content


@pytest.mark.req("S4-46")
def test_requires_links_are_followed_two_in_a_row():
    pages = [
        a_page(f"Instructions:{one}", f"---\nrequires: [{to}]\n---\n")
        for one, to in (("World Bible", "A"), *zip("ABC", "BCD", strict=True))
    ]
    package = assembled(TASK, answers(pages))
    followed = [one.heading for one in package.pages if one.why.startswith("required")]

    assert followed == ["Instructions:A", "Instructions:B"]


@pytest.mark.req("S4-13")
def test_package_has_pages_of_at_most_eight_entities():
    package = assembled(TASK, answers([a_page(one) for one in PLACES], *PLACES))

    assert [one.heading for one in package.sections["encyclopedia"]] == PLACES[:8]


@pytest.mark.req("S4-14")
def test_package_has_at_most_five_linked_pages():
    links = " ".join(f"[[{one}]]" for one in PLACES)
    pages = [a_page("The Fair", links), a_page("The Mill", links), *map(a_page, PLACES)]
    package = assembled(TASK, answers(pages, "The Fair", "The Mill"))

    assert [one.heading for one in package.pages if "linked" in one.why] == PLACES[:5]


@pytest.mark.req("S4-15")
def test_package_has_two_sources_for_each_entity():
    papers = [a_page(f"Sources:Paper {number}", "Of the mill.") for number in range(9)]
    answered = answers(papers, "The Mill")
    package = assembled(TASK, answered)

    assert [one for one in answered.asked if isinstance(one, PageSearch)] == [
        PageSearch("The Mill", ("Sources",), 2)
    ]
    assert [one.heading for one in package.sections["sources"]] == [
        "Sources:Paper 0",
        "Sources:Paper 1",
    ]


@pytest.mark.req("S4-20")
def test_package_has_at_most_6000_tokens_less_a_reserve_of_500():
    text = "The fair is held by the river. " * 148
    package = assembled(TASK, answers([a_page(one, text) for one in PLACES], *PLACES[:8]))
    tokens = ESTIMATE.count(package.render())
    one_more = tokens + ESTIMATE.count(text)

    assert package.limit_tokens == 5500
    assert tokens < 5500 < one_more < 6000
