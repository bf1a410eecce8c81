"""Tests of the place of a package: before the system prompt, or in two parts."""

import pytest

from evennia_ai.engine.knowledge.assembly.packages import place_package
from tests.engine.knowledge.assembly.test_golden_packages import package_of

PACKAGE = package_of("create_source")
PROMPT = "You write for the wiki."


@pytest.mark.req("S4-24", "S4-25")
def test_package_is_before_the_system_prompt_when_prepended():
    system, context = place_package(PACKAGE, PROMPT, "prepend")

    assert system == f"{PACKAGE.render()}\n\n{PROMPT}"
    assert system.startswith("[INSTRUCTIONS]\n--- Instructions:World Bible ---\n")
    assert context == ""


@pytest.mark.req("S4-24")
def test_split_package_has_instructions_before_the_system_prompt_only():
    system, context = place_package(PACKAGE, PROMPT, "split")

    assert system == f"{PACKAGE.render('instructions')}\n\n{PROMPT}"
    assert context.startswith("[ENCYCLOPEDIA CONTEXT]\n")
    assert f"{PACKAGE.render('instructions')}\n\n{context}" == PACKAGE.render()


@pytest.mark.req("S4-04")
@pytest.mark.parametrize("placement", ["prepend", "split"])
def test_system_prompt_is_unchanged_without_a_package(placement):
    assert place_package(package_of("query"), PROMPT, placement) == (PROMPT, "")


def test_package_is_placed_without_a_system_prompt():
    assert place_package(PACKAGE, "", "prepend") == (PACKAGE.render(), "")


def test_split_packages_of_one_task_type_have_equal_system_texts():
    assert place_package(package_of("edit_page"), PROMPT, "split")[0].startswith(
        place_package(package_of("unknown"), "", "split")[0]
    )
