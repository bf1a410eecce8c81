"""Of a talk page a writer sees three sections and nothing else."""

import pytest

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.gathering import filtered

HEADINGS = AssemblyRules().talk_sections


@pytest.mark.req("S4-16", "S4-30")
def test_only_the_sections_with_these_headings_come_through_in_their_order():
    body = (
        "Opening talk.\n== Editorial Notes ==\nNote.\n== Gossip ==\nSecret.\n"
        "== Reliability Assessment ==\nHigh.\n== Bias Analysis ==\nSome."
    )

    assert filtered(body, headings=HEADINGS) == (
        "= Reliability Assessment =\nHigh.\n= Bias Analysis =\nSome.\n= Editorial Notes =\nNote."
    )


@pytest.mark.req("S4-16")
@pytest.mark.parametrize(
    "heading", ["editorial notes", "Editorial Notes (old)", "Editorial", "Notes", ""]
)
def test_a_heading_that_is_not_exactly_one_of_them_is_left_out(heading):
    assert filtered(f"== {heading} ==\nSecret.", headings=HEADINGS) == ""


@pytest.mark.req("S4-16")
def test_a_page_without_headings_gives_nothing():
    assert filtered("Editorial Notes: a secret.", headings=HEADINGS) == ""


def test_what_stands_under_a_deeper_heading_belongs_to_the_section():
    body = "== Editorial Notes ==\nNote.\n=== Dates ===\nNone.\n== Gossip ==\nSecret."

    assert filtered(body, headings=HEADINGS) == "= Editorial Notes =\nNote.\n== Dates ==\nNone."


def test_a_deeper_heading_of_the_name_inside_another_section_is_one_of_its_own():
    body = "== Gossip ==\nSecret.\n=== Bias Analysis ===\nSome.\n=== More ===\nSecret."

    assert filtered(body, headings=HEADINGS) == "= Bias Analysis =\nSome."


def test_markdown_headings_are_headings():
    assert filtered("## Bias Analysis\nSome.", headings=HEADINGS) == "= Bias Analysis =\nSome."


def test_an_empty_section_has_no_header():
    assert filtered("== Bias Analysis ==\n\n== Gossip ==\nx", headings=HEADINGS) == ""


def test_talk_without_an_end_is_looked_through_at_its_beginning():
    body = "== Bias Analysis ==\nSome.\n== Gossip ==\n" + "x\n" * 60_000
    body += "== Editorial Notes ==\nNote."

    assert filtered(body, headings=HEADINGS) == "= Bias Analysis =\nSome."


def test_a_wiki_may_name_its_own_sections():
    assert filtered("== Doubts ==\nMany.", headings=["Doubts"]) == "= Doubts =\nMany."
