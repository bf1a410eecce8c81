"""Test that a preset gives the whole prompt that SillyTavern assembled with it.

The cases are those of `test_sillytavern_assembly`, with prompts and settings read as a preset file.
"""

from typing import Any

import pytest

from evennia_ai.formats.scenario import run_scenario
from tests.absent import need
from tests.conformance.sillytavern_assembly_adapter import answer
from tests.conformance.sillytavern_preset_adapter import scenario_of
from tests.conformance.test_sillytavern_assembly import (
    BUDGET,
    CASES,
    KEPT_EXAMPLES,
    SHORT_AND_OTHERWISE,
    theirs,
)


def ours(name: str) -> list[list[dict[str, Any]]]:
    case, defaults = CASES[name]
    return [answer(turn) for turn in run_scenario(scenario_of(case, defaults=defaults))["turns"]]


@pytest.mark.parametrize("name", sorted(CASES.keys() - KEPT_EXAMPLES.keys() - BUDGET))
def test_preset_gives_the_prompt_that_sillytavern_assembled(name: str) -> None:
    assert ours(name) == theirs(CASES[name][0])


@pytest.mark.parametrize("name", sorted(KEPT_EXAMPLES))
def test_example_text_without_speaker_is_the_only_difference_with_a_preset(name: str) -> None:
    kept = [{"role": "system", "name": None, "content": text} for text in KEPT_EXAMPLES[name]]
    [made] = ours(name)
    [told] = theirs(CASES[name][0])
    assert [message for message in made if message in kept] == kept
    assert [message for message in made if message not in kept] == told


@pytest.mark.extra
@pytest.mark.parametrize("name", sorted(BUDGET - SHORT_AND_OTHERWISE))
def test_preset_prompt_equals_sillytavern_when_the_budget_is_small(name: str) -> None:
    need("bpe_openai", undone="nothing is counted as the application counts")
    assert ours(name) == theirs(CASES[name][0])
