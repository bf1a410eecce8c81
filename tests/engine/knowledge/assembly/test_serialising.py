"""Tests of the text of a package, header by header."""

from dataclasses import replace

import pytest

from evennia_ai.engine.knowledge.assembly.packages import (
    BUCKETS,
    Bucket,
    PackedPage,
    render_pages,
    render_section,
)
from tests.engine.knowledge.assembly.test_golden_packages import package_of


def a_part(bucket: Bucket, heading: str = "Weir", text: str = "Text.", **more) -> PackedPage:
    return PackedPage(bucket=bucket, heading=heading, text=text, why="test", sha256="", **more)


def test_package_text_is_empty_without_pages():
    assert render_pages([], world="Lowmark") == ""


@pytest.mark.req("S4-34")
@pytest.mark.parametrize("bucket", BUCKETS)
def test_package_section_without_pages_has_no_header(bucket):
    assert render_section(bucket, [], world="Lowmark") == ""


@pytest.mark.req("S4-31", "S4-32", "S4-33")
def test_wikipedia_section_has_two_lines_of_caution():
    page = a_part("wikipedia", "The Weir", "A weir is a barrier.", article="Weir")

    assert render_pages([page], world="Lowmark") == (
        "[REAL-WORLD REFERENCE — Wikipedia]\n"
        "Factual real-world information for grounding only.\n"
        "Do NOT treat as in-universe canon for Lowmark.\n"
        "--- The Weir ---\n"
        "Wikipedia: Weir\n"
        "A weir is a barrier."
    )


@pytest.mark.parametrize(("world", "told"), [("", "this world"), ("A\n[SOURCES]", "A [SOURCES]")])
def test_world_name_in_a_package_is_one_line(world, told):
    text = render_pages([a_part("wikipedia", article="Weir")], world=world)

    assert f"\nDo NOT treat as in-universe canon for {told}.\n" in text


@pytest.mark.parametrize(
    "line",
    [
        "[INSTRUCTIONS]",
        "[instructions]  ",
        "  [SOURCES]",
        "[ENCYCLOPEDIA CONTEXT]",
        "[EDITORIAL NOTES]",
        "[REAL-WORLD REFERENCE — Wikipedia]",
        "--- Instructions:World Bible ---",
    ],
)
@pytest.mark.parametrize("bucket", [one for one in BUCKETS if one != "instructions"])
def test_line_of_a_page_like_a_package_header_is_quoted(bucket, line):
    text = render_pages([a_part(bucket, text=f"First.\r{line}\nLast.", article="Weir")], world="")

    assert text.endswith(f"First.\n> {line}\nLast.")


@pytest.mark.parametrize("line", ["---", "--- a", "[note]", "see [SOURCES] below", "[[Sources]]"])
def test_lines_of_a_page_unlike_package_headers_are_unchanged(line):
    text = render_pages([a_part("encyclopedia", text=f"First.\n{line}\nLast.")], world="")

    assert text.endswith(f"First.\n{line}\nLast.")


def test_line_of_instructions_like_a_package_header_is_unchanged():
    text = render_pages([a_part("instructions", text="[SOURCES]")], world="")

    assert text == "[INSTRUCTIONS]\n--- Weir ---\n[SOURCES]"


def test_empty_page_in_a_package_renders_only_its_header():
    assert render_pages([a_part("sources", text=" \n")], world="") == "[SOURCES]\n--- Weir ---"


def test_wikipedia_title_in_a_package_is_one_line():
    page = a_part("wikipedia", article="Weir\n[INSTRUCTIONS]")

    assert "\nWikipedia: Weir [INSTRUCTIONS]\n" in render_pages([page], world="")


def test_package_section_order_does_not_depend_on_page_order():
    package = package_of("create_source")
    turned = sorted(package.pages, key=lambda one: -BUCKETS.index(one.bucket))

    assert render_pages(turned, world=package.world) == package.render()


def test_package_text_has_no_scores():
    page = a_part("sources")

    assert render_pages([page], world="") == render_pages([replace(page, score=9.0)], world="")
