"""Test that with `assembly.rules: sillytavern` a prompt equals the one that SillyTavern assembled.

Each case of `sillytavern-assembly/*.json` is one test. Where ours differs on purpose, the test says
how it must differ, so that nothing is left out of the comparison.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.formats.scenario import run_scenario
from tests.absent import need
from tests.conformance.sillytavern_assembly_adapter import answer, scenario_of, wanted

FOLDER = Path(__file__).parent / "sillytavern-assembly"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}

Messages = list[dict[str, Any]]
CASES = {
    case["id"]: (case, file["entry_defaults"]) for file in FILES.values() for case in file["cases"]
}
# Cases with example text that has no speaker. SillyTavern drops this text, ours keeps it.
KEPT_EXAMPLES = {
    "example-text-only": ["Just text."],
    "ra-022": ["<b0> And now."],
    "ra-027": ["<b0> Now go look dragon we now wait on."],
    "ra-056": ["<b1> We hill hill then then elf on."],
    "ra-076": ["<b2> Sword go dragon sea go."],
    "ra-078": ["<b0> Look look then wait moon we we we."],
    "ra-100": ["<b0> Raven moon.", "<b5> And hill moon sword and we now sword."],
    "ra-117": ["<b0> Crown then ash dragon on."],
    "ra-129": ["<b3> Wait wait."],
    "ra-141": ["<b4> Softly raven softly hill there go wait wait."],
    "ra-142": ["<b0> We dragon sea we sword go and."],
    "ra-178": ["<b4> Moon sea hill softly we wait there we."],
    "ra-179": ["<b0> Softly softly dragon wait wait."],
    "ra-181": ["<b0> Raven go dragon we look on."],
}
# Cases with a small budget. Tokens are counted as SillyTavern counts them.
BUDGET = {case["id"] for case in FILES["assembly_budget"]["cases"]}
SHORT_AND_OTHERWISE = {"trim-inject-700", "trim-inject-900"}


def ours(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Messages]:
    return [answer(turn) for turn in run_scenario(scenario_of(case, defaults=defaults))["turns"]]


def theirs(case: Mapping[str, Any]) -> list[Messages]:
    return [wanted(turn) for turn in case["expected"]]


@pytest.mark.parametrize("name", sorted(CASES.keys() - KEPT_EXAMPLES.keys() - BUDGET))
def test_prompt_equals_the_one_that_sillytavern_assembled(name: str) -> None:
    case, defaults = CASES[name]
    assert ours(case, defaults) == theirs(case)


@pytest.mark.parametrize("name", sorted(KEPT_EXAMPLES))
def test_example_text_without_speaker_is_the_only_difference_to_sillytavern(name: str) -> None:
    case, defaults = CASES[name]
    kept = [{"role": "system", "name": None, "content": text} for text in KEPT_EXAMPLES[name]]
    [made] = ours(case, defaults)
    [told] = theirs(case)
    assert [message for message in made if message in kept] == kept
    assert [message for message in made if message not in kept] == told


@pytest.mark.extra
@pytest.mark.parametrize("name", sorted(BUDGET - SHORT_AND_OTHERWISE))
def test_prompt_equals_sillytavern_when_the_budget_is_small(name: str) -> None:
    need("bpe_openai", undone="nothing is counted as the application counts")
    case, defaults = CASES[name]
    assert ours(case, defaults) == theirs(case)


@pytest.mark.extra
def test_text_deeper_than_a_cut_history_is_placed_at_the_history_s_top() -> None:
    """SillyTavern loses this text (S3-06)."""
    need("bpe_openai", undone="nothing is counted as the application counts")
    [made] = ours(*CASES["trim-inject-700"])
    [told] = theirs(CASES["trim-inject-700"][0])
    deep = {"role": "system", "name": None, "content": "TWENTY"}
    at = made.index(deep)
    assert made[at - 1]["content"] == "[Start a new Chat]"
    assert [message for message in made if message != deep] == told


@pytest.mark.extra
def test_block_of_examples_is_kept_whole_or_dropped_whole() -> None:
    """SillyTavern sends an example question after dropping its answer."""
    need("bpe_openai", undone="nothing is counted as the application counts")
    [made] = ours(*CASES["trim-inject-900"])
    [told] = theirs(CASES["trim-inject-900"][0])
    half = [message["content"] for message in told if message not in made]
    assert half == ["[Example Chat]", "Who are you?"]
    assert [message for message in told if message["content"] not in half] == made


def test_sillytavern_assembly_cases_exist() -> None:
    assert len(CASES) >= 110
