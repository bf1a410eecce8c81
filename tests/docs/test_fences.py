"""Test that every example on a page for users is played by a test."""

from pathlib import Path

import pytest

from tests.docs.fences import (
    KINDS,
    NOT_FOR_USERS,
    PAGES,
    ROOT,
    all_blocks,
    blocks,
    blocks_of,
    user_pages,
)

PLAYERS = {
    "console": "test_console.py",
    "file": "test_files.py",
    "look": "test_files.py",
    "output": "test_printed.py",
    "router": "test_files.py",
    "python": "test_followed.py",
    "typed": "test_followed.py",
    "wiki": "test_files.py",
}
PAGE = """# Title
```
kb
```
## Below
   ```yaml mill.yaml
   a: 1
   ```
~~~
```
~~~
"""


def test_example_has_a_known_kind():
    unknown = [f"{one.place}: '{one.language}'" for one in all_blocks() if not one.kind]
    assert unknown == [], "nothing plays examples of these kinds"


@pytest.mark.parametrize("kind", sorted(set(KINDS.values())))
def test_kind_of_example_has_examples_and_a_player(kind):
    assert blocks(kind)
    player = (ROOT / "tests" / "docs" / PLAYERS[kind]).read_text(encoding="utf-8")
    assert f'blocks("{kind}")' in player or "all_blocks()" in player


def test_every_page_for_users_is_read():
    pages = {page.name for page in PAGES.glob("*/*.md")} | {"README.md"}
    assert {page.name for page in user_pages()} == pages - NOT_FOR_USERS


def test_example_knows_its_place_heading_and_language(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    found = [(one.line, one.heading, one.language, one.name, one.text) for one in blocks_of(page)]
    assert found == [
        (2, "Title", "", "", "kb\n"),
        (6, "Below", "yaml", "mill.yaml", "a: 1\n"),
        (9, "Below", "", "", "```\n"),
    ]


def test_example_without_end_is_an_error(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("```\nkb\n", encoding="utf-8")
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        list(blocks_of(page))


def test_all_fences_are_found_as_examples():
    text = "\n".join(page.read_text(encoding="utf-8") for page in user_pages())
    fences = [line for line in text.splitlines() if line.lstrip().startswith("```")]
    assert len(all_blocks()) == len(fences) // 2
