"""Tests of the choice of sections from a talk page."""

import pytest

from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.gathering import extract_talk_sections

HEADINGS = AssemblyRules().talk_sections


@pytest.mark.req("S4-16", "S4-30")
def test_talk_sections_are_the_wanted_ones_in_order():
    body = (
        "Opening talk.\n== Editorial Notes ==\nNote.\n== Gossip ==\nSecret.\n"
        "== Reliability Assessment ==\nHigh.\n== Bias Analysis ==\nSome."
    )

    assert extract_talk_sections(body, headings=HEADINGS) == (
        "= Reliability Assessment =\nHigh.\n= Bias Analysis =\nSome.\n= Editorial Notes =\nNote."
    )


@pytest.mark.req("S4-16")
@pytest.mark.parametrize(
    "heading", ["editorial notes", "Editorial Notes (old)", "Editorial", "Notes", ""]
)
def test_talk_section_with_a_merely_similar_heading_is_left_out(heading):
    assert extract_talk_sections(f"== {heading} ==\nSecret.", headings=HEADINGS) == ""


@pytest.mark.req("S4-16")
def test_talk_sections_are_empty_without_headings():
    assert extract_talk_sections("Editorial Notes: a secret.", headings=HEADINGS) == ""


def test_talk_section_includes_deeper_headings():
    body = "== Editorial Notes ==\nNote.\n=== Dates ===\nNone.\n== Gossip ==\nSecret."

    assert (
        extract_talk_sections(body, headings=HEADINGS)
        == "= Editorial Notes =\nNote.\n== Dates ==\nNone."
    )


def test_talk_section_is_found_inside_another_section():
    body = "== Gossip ==\nSecret.\n=== Bias Analysis ===\nSome.\n=== More ===\nSecret."

    assert extract_talk_sections(body, headings=HEADINGS) == "= Bias Analysis =\nSome."


def test_talk_section_is_found_with_markdown_headings():
    assert (
        extract_talk_sections("## Bias Analysis\nSome.", headings=HEADINGS)
        == "= Bias Analysis =\nSome."
    )


def test_talk_section_without_text_is_left_out():
    assert extract_talk_sections("== Bias Analysis ==\n\n== Gossip ==\nx", headings=HEADINGS) == ""


def test_very_long_talk_page_is_cut():
    body = "== Bias Analysis ==\nSome.\n== Gossip ==\n" + "x\n" * 60_000
    body += "== Editorial Notes ==\nNote."

    assert extract_talk_sections(body, headings=HEADINGS) == "= Bias Analysis =\nSome."


def test_config_page_can_name_the_wanted_talk_sections():
    assert extract_talk_sections("== Doubts ==\nMany.", headings=["Doubts"]) == "= Doubts =\nMany."
