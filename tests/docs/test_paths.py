"""Test that the files named in documents exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
)
NAMED = re.compile(r"(?:`|\]\()((?:[\w.-]+/)*[\w-]+\.(?:py|md|toml|yaml)|(?:[\w.-]+/)+)(?:`|\))")
# Matches a name of the code together with the file that a page attributes it to.
PLACED = re.compile(
    r"`(\w+)`(?: and `(\w+)`)? in `((?:[\w.-]+/)*[\w-]+\.py)`"
    r"|`((?:[\w.-]+/)*[\w-]+\.py): (\w+)`"
)
# Files of a normal game that this repository has in another place.
OF_A_GAME = {"web/urls.py"}


def test_page_names_only_existing_files() -> None:
    missing = []
    for page in PAGES:
        named = set(NAMED.findall(page.read_text(encoding="utf-8"))) - OF_A_GAME
        folders = (ROOT, page.parent, ROOT / "evennia_ai")
        missing += [
            f"{name} in {page}"
            for name in sorted(named)
            if not any((folder / name).exists() for folder in folders)
        ]
    assert missing == []


def test_pages_name_some_files() -> None:
    named = {name for page in PAGES for name in NAMED.findall(page.read_text(encoding="utf-8"))}
    assert {"engine/compose.py", "docs/index.md", "tests/npc/test_view.py"} <= named


def code_names(page: Path) -> list[tuple[str, str]]:
    """Return each name of the code that a page attributes to a file, with the file."""
    found = []
    for one, other, file, first_file, last in PLACED.findall(page.read_text(encoding="utf-8")):
        found += [(name, file or first_file) for name in (one, other, last) if name]
    return found


def test_name_that_a_page_attributes_to_a_file_exists_in_it() -> None:
    missing = []
    placed = [(page, *found) for page in PAGES for found in code_names(page)]
    for where, name, file in placed:
        places = [
            folder / file for folder in (ROOT / "evennia_ai", ROOT) if (folder / file).exists()
        ]
        if not any(re.search(rf"\b{name}\b", place.read_text("utf-8")) for place in places):
            missing.append(f"{where}: {name} in {file}")
    assert missing == []


def test_pages_name_functions_together_with_their_files() -> None:
    names = {name for page in PAGES for name, _ in code_names(page)}
    assert {"interleave_fragments", "PromptContext", "RESTRICTED_POLICY"} <= names
