"""Tests of `requires` links: their depth, their order, and circles of links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.assembly.instructing import (
    MOST_PAGES,
    RequiredPages,
    resolve_requires,
)
from tests.engine.knowledge.assembly.driver import AnswersFrom, a_page, driven, named, the_wiki

REQUIRES = "---\nrequires: [{}]\n---\nText."


def pages_of(**requires: str):
    """Make instruction pages whose titles are single letters. `a="bc"` means that a requires b and
    c."""
    return [
        a_page(f"Instructions:{one}", REQUIRES.format(", ".join(to)))
        for one, to in requires.items()
    ]


def graph(
    pages, root: str, *, max_depth: int | None = 2, hidden=(), asked: list | None = None
) -> RequiredPages:
    answers = AnswersFrom(pages=pages, hidden=hidden, asked=[] if asked is None else asked)
    [first] = [one for one in pages if one.name.title == root]
    return driven(resolve_requires([first], max_depth=max_depth), answers)


def depths(found: RequiredPages) -> dict[str, int]:
    return {one.page.name.title: one.depth for one in found.reached}


@pytest.mark.req("S4-12", "S4-45", "S4-48")
def test_pages_that_interview_instructions_require_are_found():
    found = graph(the_wiki(), "Create/Source/Interview")

    assert depths(found) == {
        "Create/Source/Interview": 0,
        "Create/Source (Base Workflow)": 1,
        "Create/Source/Interview Tone": 1,
        "Schema/Source Page": 1,
        "Schema/Source Talk": 1,
        "World Bible": 2,
        "Core/Continuity Rules": 2,
    }


@pytest.mark.req("S4-12")
def test_required_pages_are_in_order_of_distance_and_declaration():
    found = graph(pages_of(A="CB", B="D", C="E", D="", E=""), "A")

    assert list(depths(found)) == ["A", "C", "B", "E", "D"]


@pytest.mark.req("S4-46")
def test_third_requires_link_in_a_row_is_not_followed():
    assert depths(graph(pages_of(A="B", B="C", C="D", D=""), "A")) == {"A": 0, "B": 1, "C": 2}


@pytest.mark.req("S4-47")
def test_every_requires_link_is_followed_without_a_limit():
    found = graph(pages_of(A="B", B="C", C="D", D=""), "A", max_depth=None)

    assert depths(found)["D"] == 3


@pytest.mark.req("S4-12")
def test_circle_of_requires_links_fetches_each_page_once():
    asked: list = []
    found = graph(pages_of(A="BA", B="CA", C="ABC"), "A", max_depth=None, asked=asked)

    assert depths(found) == {"A": 0, "B": 1, "C": 2}
    assert [one.names for one in asked] == [named("Instructions:B"), named("Instructions:C")]


def test_requires_depth_of_zero_fetches_no_page():
    assert depths(graph(pages_of(A="B", B=""), "A", max_depth=0)) == {"A": 0}


@pytest.mark.req("S4-12")
def test_missing_required_page_gives_a_warning_with_the_requiring_page():
    found = graph(pages_of(A="BX", B=""), "A")

    assert list(depths(found)) == ["A", "B"]
    assert found.warnings == ("Instructions:A requires Instructions:X, and there is no such page",)


@pytest.mark.req("S4-55")
def test_hidden_required_page_gives_a_warning():
    found = graph(pages_of(A="B", B="C", C=""), "A", hidden=named("Instructions:B"))

    assert list(depths(found)) == ["A"]
    assert found.warnings == ("Instructions:A requires Instructions:B, which may not be read here",)


def test_required_page_with_two_titles_is_included_once():
    alias = a_page("Instructions:B", "---\naliases: [Bee]\n---\nText.")
    found = graph([*pages_of(A="B"), a_page("Instructions:A2"), alias], "A")
    twice = a_page("Instructions:Z", REQUIRES.format("B, Bee"))
    found = graph([twice, alias], "Z")

    assert list(depths(found)) == ["Z", "B"]


def test_assembly_leaves_out_required_pages_over_the_limit_with_a_warning():
    wide = {f"P{number}": [f"P{number * 2 + 1}", f"P{number * 2 + 2}"] for number in range(500)}
    pages = [
        a_page(f"Instructions:{one}", REQUIRES.format(", ".join(to))) for one, to in wide.items()
    ]
    found = graph(pages, "P0", max_depth=None)

    assert len(found.reached) <= MOST_PAGES
    assert "more than 200 pages are required; the others were left out" in found.warnings


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40), st.integers(0, 5))
def test_any_requires_graph_gives_each_page_once_at_its_least_depth(edges, max_depth):
    to = {one: [b for a, b in edges if a == one] for one in range(10)}
    pages = pages_of(**{f"N{one}": "" for one in to})
    pages = [
        a_page(f"Instructions:N{one}", REQUIRES.format(", ".join(f"N{b}" for b in targets)))
        for one, targets in to.items()
    ]

    assert depths(graph(pages, "N0", max_depth=max_depth)) == _shortest(to, max_depth)


def _shortest(to: dict[int, list[int]], max_depth: int) -> dict[str, int]:
    """Compute the depths in another way: shorten paths until no path gets shorter."""
    least = {0: 0}
    for _ in to:
        for one, targets in to.items():
            for target in targets:
                if one in least and least[one] < max_depth:
                    least[target] = min(least.get(target, 99), least[one] + 1)
    return {f"N{one}": depth for one, depth in least.items()}
