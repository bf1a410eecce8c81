"""A preset gives the whole prompt that SillyTavern assembled with it.

The cases of `test_sillytavern_assembly`, their prompts and settings read as a preset's file.
"""

from typing import Any

import pytest

from evennia_ai.scenario import run_scenario
from tests.conformance.sillytavern_assembly_adapter import answer
from tests.conformance.sillytavern_preset_adapter import scenario_of
from tests.conformance.test_sillytavern_assembly import BUDGET, CASES, KEPT_EXAMPLES, theirs


def ours(name: str) -> list[list[dict[str, Any]]]:
    case, defaults = CASES[name]
    return [answer(turn) for turn in run_scenario(scenario_of(case, defaults=defaults))["turns"]]


@pytest.mark.parametrize("name", sorted(CASES.keys() - KEPT_EXAMPLES.keys() - BUDGET))
def test_a_preset_gives_the_prompt_that_the_application_assembled_with_it(name: str) -> None:
    assert ours(name) == theirs(CASES[name][0])
