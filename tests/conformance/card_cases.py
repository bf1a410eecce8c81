"""The cases of the kit that were written from the card standard, and what the package answers."""

import sys
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from conformance.run import load_cases

KIT: Final = Path(__file__).resolve().parents[2] / "conformance"
sys.path.append(str(KIT / "adapters"))
from evennia_ai_cards import answer  # noqa: E402

CASES: Final[Mapping[str, dict[str, Any]]] = {
    case["id"].removeprefix("card/"): case
    for case in load_cases()
    if case["id"].startswith("card/CC3-")
}
"""The cases by the names that docs/reference/card-standard.md uses."""


def answer_of(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the output of the adapter for a case."""
    return answer(deepcopy(case["input"]))
