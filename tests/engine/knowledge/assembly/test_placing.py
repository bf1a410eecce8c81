"""Where a package stands: before the system prompt, or in two parts."""

import pytest

from evennia_ai.engine.knowledge.assembly.packages import placed
from tests.engine.knowledge.assembly.test_golden_packages import package_of

PACKAGE = package_of("create_source")
PROMPT = "You write for the wiki."


@pytest.mark.req("S4-24", "S4-25")
def test_a_package_is_prepended_to_the_system_prompt():
    system, context = placed(PACKAGE, PROMPT, "prepend")

    assert system == f"{PACKAGE.serialised()}\n\n{PROMPT}"
    assert system.startswith("[INSTRUCTIONS]\n--- Instructions:World Bible ---\n")
    assert context == ""


@pytest.mark.req("S4-24")
def test_split_the_instructions_stay_static_and_the_rest_is_context():
    system, context = placed(PACKAGE, PROMPT, "split")

    assert system == f"{PACKAGE.serialised('instructions')}\n\n{PROMPT}"
    assert context.startswith("[ENCYCLOPEDIA CONTEXT]\n")
    assert f"{PACKAGE.serialised('instructions')}\n\n{context}" == PACKAGE.serialised()


@pytest.mark.req("S4-04")
@pytest.mark.parametrize("placement", ["prepend", "split"])
def test_a_bypassed_task_has_the_system_prompt_as_it_is(placement):
    assert placed(package_of("query"), PROMPT, placement) == (PROMPT, "")


def test_without_a_system_prompt_there_is_the_package_alone():
    assert placed(PACKAGE, "", "prepend") == (PACKAGE.serialised(), "")


def test_split_two_tasks_of_one_type_share_their_static_part():
    assert placed(package_of("edit_page"), PROMPT, "split")[0].startswith(
        placed(package_of("unknown"), "", "split")[0]
    )
