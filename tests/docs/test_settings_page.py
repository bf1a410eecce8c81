"""docs/settings.md names every setting with its default and the id of its check."""

import ast
import re
from pathlib import Path

from evennia_ai import conf

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \| .+ \| (E\d+) \|$", re.MULTILINE)


def test_the_page_lists_every_setting_with_its_default_and_its_check() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    told = [(name, ast.literal_eval(default), check) for name, default, check in rows]
    assert told == [(one.name, one.default, one.id) for one in conf._SETTINGS]
