"""Test that cards and their lore follow the character card standard.

Each case of `ccv3/*.json` is one test.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.ccv3_adapter import outcome_of, problems

FOLDER = Path(__file__).parent / "ccv3"


def _case(path: Path) -> Any:
    case = json.loads(path.read_text("utf-8"))
    return pytest.param(case, id=case["id"])


CASES = [_case(path) for path in sorted(FOLDER.glob("*.json"))]


@pytest.mark.parametrize("case", CASES)
def test_card_v3_case_has_the_expected_result(case: dict[str, Any], tmp_path: Path) -> None:
    assert problems(outcome_of(case, folder=tmp_path), case) == []


def test_card_v3_cases_are_complete() -> None:
    assert len(CASES) >= 65
