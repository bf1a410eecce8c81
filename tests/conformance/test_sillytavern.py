"""Test that with `lore.rules: sillytavern` the engine gives the answers of SillyTavern.

Each case of `sillytavern/*.json` is one test. Cases with the feature `double_removal` are left out:
in them SillyTavern removes an uninvolved entry from an inclusion group by mistake
(`sillytavern/README.md`).
"""

import json
from pathlib import Path
from typing import Any

import pytest

from evennia_ai.formats.scenario import run_scenario
from tests.conformance.sillytavern_adapter import answer, scenario_of, wanted

FOLDER = Path(__file__).parent / "sillytavern"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.json"))}
# Features of cases in which the engine differs on purpose.
REFUSED = {"double_removal"}


def _case(name: str, case: dict[str, Any]) -> Any:
    return pytest.param(case, FILES[name]["entry_defaults"], id=f"{name}/{case['id']}")


CASES = [
    _case(name, case)
    for name, file in FILES.items()
    for case in file["cases"]
    if case["kind"] == "world_info" and REFUSED.isdisjoint(case["features"])
]


@pytest.mark.parametrize(("case", "defaults"), CASES)
def test_lore_case_gives_the_same_entries_as_sillytavern(
    case: dict[str, Any], defaults: dict[str, Any]
) -> None:
    turns = run_scenario(scenario_of(case, defaults=defaults))["turns"]
    assert [answer(turn) for turn in turns] == [wanted(turn, case) for turn in case["expected"]]


def test_sillytavern_lore_cases_exist() -> None:
    assert len(CASES) >= 200
