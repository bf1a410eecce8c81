"""Which pages those at hand have in common."""

import pytest

from evennia_ai.engine.knowledge.assembly.gathering import Seed, mentions, related
from tests.engine.knowledge.assembly.driver import named


def a_seed(title: str, *links: str) -> Seed:
    """A page with these links, one of them perhaps more than once."""
    targets = named(*links)
    return Seed(name=named(title)[0], links=tuple(dict.fromkeys(targets)), mentions=targets)


def ranks(*seeds: Seed) -> list[tuple[str, int, int]]:
    return [(one.name.full, one.seeds, one.links) for one in related(seeds)]


@pytest.mark.req("S4-14")
def test_pages_rank_by_seeds_then_by_links_then_by_title():
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
def test_seeds_are_not_related_to_themselves():
    assert ranks(a_seed("A", "A", "B"), a_seed("B", "A", "C")) == [("C", 1, 1)]


def test_pages_of_other_namespaces_are_left_to_other_steps():
    assert ranks(a_seed("A", "Sources:Ledger", "Instructions:Config", "B")) == [("B", 1, 1)]


def test_a_link_that_only_the_backend_knows_counts_once():
    seed = Seed(name=named("A")[0], links=named("B"))

    assert [one.links for one in related([seed])] == [1]


def test_nothing_is_related_to_nothing():
    assert related([]) == ()


def test_every_link_in_a_text_is_counted():
    text = "[[B]], [[b|again]] and [[B#part]], <nowiki>[[B]]</nowiki>, [[]] and [[C]]"

    assert mentions(text) == named("B", "B", "B", "C")
