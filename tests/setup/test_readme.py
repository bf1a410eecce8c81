"""Test the length of the README and the form of the changelog."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 700


def test_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_readme_has_four_pictures_five_differences_and_four_links_at_its_end() -> None:
    def under(heading: str) -> str:
        return README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]

    pictures = re.findall(r"^!\[[^\]]+\]\((docs/images/[^)]+)\)$", README, re.MULTILINE)
    assert len(set(pictures)) == 4
    assert all((ROOT / picture).is_file() for picture in pictures)
    assert len(re.findall(r"^- ", under("What is different here"), re.MULTILINE)) == 5
    assert len(re.findall(r"^- ", under("More"), re.MULTILINE)) == 4


def test_changelog_has_one_release_of_one_line_entries() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entries = text.partition("### Added\n")[2]
    assert re.findall(r"^## (\S+)", text, re.MULTILINE) == ["0.1.0"]
    assert re.findall(r"^### (\S+)", text, re.MULTILINE) == ["Added", "Changed", "Fixed"]
    assert [line for line in entries.splitlines() if line and line[:2] not in ("- ", "##")] == []
