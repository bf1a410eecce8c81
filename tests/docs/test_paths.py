"""The files that the documents name are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
)
NAMED = re.compile(r"(?:`|\]\()((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|yaml)|(?:[\w.-]+/)+)(?:`|\))")
# Files of a game that Evennia makes and this repository has elsewhere.
OF_A_GAME = {"web/urls.py"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_files_that_are_there(page: Path) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8"))) - OF_A_GAME
    folders = (ROOT, page.parent, ROOT / "evennia_ai")
    assert [name for name in sorted(named) if not any((f / name).exists() for f in folders)] == []


def test_files_are_named_at_all() -> None:
    named = {name for page in PAGES for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert {"engine/compose.py", "docs/index.md", "tests/npc/test_view.py"} <= named
