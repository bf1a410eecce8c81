"""Tests of the ranking of pages to which chosen pages link."""

import pytest

from evennia_ai.engine.knowledge.assembly.gathering import (
    LinkSource,
    linked_names,
    rank_linked_pages,
)
from tests.engine.knowledge.assembly.driver import named


def a_seed(title: str, *links: str) -> LinkSource:
    """Make a page with these links. A link may be repeated."""
    targets = named(*links)
    return LinkSource(name=named(title)[0], links=tuple(dict.fromkeys(targets)), mentions=targets)


def ranks(*seeds: LinkSource) -> list[tuple[str, int, int]]:
    return [(one.name.full, one.seeds, one.links) for one in rank_linked_pages(seeds)]


@pytest.mark.req("S4-14")
def test_linked_pages_rank_by_sources_then_links_then_title():
    seeds = (
        a_seed("A", "Often", "Often", "Often", "Both", "Yew", "Elm"),
        a_seed("B", "Both", "Twice", "Twice"),
    )

    assert ranks(*seeds) == [
        ("Both", 2, 2),
        ("Often", 1, 3),
        ("Twice", 1, 2),
        ("Elm", 1, 1),
        ("Yew", 1, 1),
    ]


@pytest.mark.req("S4-14")
def test_linked_pages_leave_out_the_pages_with_the_links():
    assert ranks(a_seed("A", "A", "B"), a_seed("B", "A", "C")) == [("C", 1, 1)]


def test_linked_pages_are_only_of_the_encyclopedia():
    assert ranks(a_seed("A", "Sources:Ledger", "Instructions:Config", "B")) == [("B", 1, 1)]


def test_link_that_is_missing_in_the_text_counts_once():
    seed = LinkSource(name=named("A")[0], links=named("B"))

    assert [one.links for one in rank_linked_pages([seed])] == [1]


def test_no_linked_pages_are_found_without_pages():
    assert rank_linked_pages([]) == ()


def test_linked_names_keep_repeated_links():
    text = "[[B]], [[b|again]] and [[B#part]], <nowiki>[[B]]</nowiki>, [[]] and [[C]]"

    assert linked_names(text) == named("B", "B", "B", "C")
