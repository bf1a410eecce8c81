"""docs/settings.md names every setting with its default and the id of its check."""

import ast
import dataclasses
import re
from pathlib import Path

from evennia_ai.cards.limits import CardLimits
from evennia_ai.settings_table import SETTINGS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \| .+ \| (E\d+) \|$", re.MULTILINE)


def test_the_page_lists_every_setting_with_its_default_and_its_check() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    told = [(name, ast.literal_eval(default), check) for name, default, check in rows]
    assert told == [(one.name, one.default, one.id) for one in SETTINGS]


def test_the_page_lists_every_limit_of_a_card_with_its_default() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Limits of card files")[2]
    section = page.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.M)
    told = {name: int(most) for name, most in rows}
    assert told == dataclasses.asdict(CardLimits())
