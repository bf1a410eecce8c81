"""Test that cards and their lore follow the character card standard.

Each case of the conformance kit that was written from the standard is one test.
"""

from typing import Any

import pytest

from conformance.run import problems
from tests.conformance.card_cases import CASES, answer_of


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
def test_card_v3_case_has_the_expected_result(case: dict[str, Any]) -> None:
    assert problems(case, answer_of(case)) == []


def test_card_v3_cases_are_complete() -> None:
    assert len(CASES) >= 65
