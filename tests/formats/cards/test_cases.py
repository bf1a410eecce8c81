"""The golden cases in `cases/*.yaml`: a card, a history, and the expected prompt."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.engine.prompt.components import ALL_GRANTS
from tests.formats.cards.builders import lore, prompt_of, shown, with_lore

CASES = [
    pytest.param(
        case,
        id=f"{path.stem}: {case['title']}",
        marks=[pytest.mark.req(*case["req"])] if "req" in case else [],
    )
    for path in sorted(Path(__file__).parent.glob("cases/*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES)
def test_card_gives_the_prompt_that_its_golden_case_expects(case: dict[str, Any]):
    given, expect = case["given"], case["expect"]
    entries = [lore(**entry) for entry in given.get("lore", [])]
    card = with_lore(*entries, **given.get("card", {}))
    prompt = prompt_of(
        card,
        *given.get("history", []),
        grants=frozenset(given.get("grants", ALL_GRANTS)),
        **given.get("defaults", {}),
    )
    if "history" in expect:
        assert shown(prompt, block="history") == expect["history"]
    if "prompt" in expect:
        assert shown(prompt) == expect["prompt"]
    for item, verdicts in expect.get("verdicts", {}).items():
        assert [
            f"{verdict.stage}: {verdict.reason}"
            for verdict in prompt.verdicts
            if verdict.item == item
        ] == verdicts
