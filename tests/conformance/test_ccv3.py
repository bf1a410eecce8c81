"""Cards and their lore do what the character card standard says, case by case.

One test a case of `ccv3/*.json`. Cases that ask for an export are skipped, each with that reason.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.ccv3_adapter import asks_for_export, outcome_of, problems

FOLDER = Path(__file__).parent / "ccv3"
NO_EXPORT = pytest.mark.skip(reason="asks for an export of the card, and nothing exports cards yet")


def _case(path: Path) -> Any:
    case = json.loads(path.read_text("utf-8"))
    return pytest.param(case, id=case["id"], marks=[NO_EXPORT] if asks_for_export(case) else [])


CASES = [_case(path) for path in sorted(FOLDER.glob("*.json"))]


@pytest.mark.parametrize("case", CASES)
def test_a_case_holds(case: dict[str, Any], tmp_path: Path) -> None:
    assert problems(outcome_of(case, folder=tmp_path), case) == []


def test_only_cases_that_ask_for_an_export_are_skipped() -> None:
    skipped = sorted(case.id for case in CASES if case.marks)
    assert skipped == ["CC3-ERR-024", "CC3-RT-001", "CC3-RT-005", "CC3-RT-008"]
    assert len(CASES) >= 65
