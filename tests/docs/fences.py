"""The fenced examples of the README and of the pages that users read, each with its kind.

For each kind, a test plays its examples. An example without a kind fails a test, and so does one
that the test of its kind cannot play. So no page shows something untested.

| language | what the example is |
|---|---|
| `console` | lines typed into a shell: after `$ ` a command, below it the output |
| none, `game` | lines typed in the game by a builder of the demo village; output is indented |
| `nginx` | the configuration of a router of models, with which nginx starts |
| `text` | printed output, or lines typed in the game if each begins like a command |
| `python` | code, settings, or the file that its first line names |
| `yaml`, `json` | a file; commands of the page use it if a name follows the language |
| `markdown` | a page of a knowledge base |
| `php` | settings of a wiki |
| `css`, `html` | a style sheet and a template with the look of a game |
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs"
# Pages for developers of evennia_ai. Their examples are no instructions for users.
NOT_FOR_USERS: Final = {
    *("api.md", "architecture.md", "benchmarks.md", "decisions.md", "requirements.md"),
    *("conformance-kit.md", "write-an-adapter.md"),  # tests/conformance/test_kit.py plays them.
    *("a-character-from-nothing.md", "your-sillytavern-character.md"),  # played by test_tutorial.py
}
KINDS: Final = {
    "console": "console",
    "": "typed",
    "game": "typed",
    "text": "output",
    "nginx": "router",
    "python": "python",
    "yaml": "file",
    "json": "file",
    "markdown": "file",
    "php": "wiki",
    "css": "look",
    "html": "look",
}
REFUSED: Final = re.compile(
    r"Command '.*' is not available|^Usage: .|^Could not find|More than one match|untrapped error"
    r"|Traceback|^Not saved|You may not see it any more|^There is no |has no attribute"
    r"|^No .* matches",
    re.IGNORECASE | re.MULTILINE,
)
"""Matches what Evennia or our commands print if they refuse a typed line."""
_GAP: Final = re.compile(r" {2,}(?=\S)")
"""The gap between a typed line and the remark on the same line."""
_FENCE: Final = re.compile(r"^( *)(`{3,}|~{3,})[ \t]*([^\n`]*)$")
_TYPED: Final = re.compile(
    r"(?:ai|card|component|create|kb|look|lore|lorekeeper|note|reload|say|set|show|talk|whisper)"
    r"(?:[ /]|$)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced example, with its place and its text."""

    page: str
    line: int
    heading: str
    language: str
    name: str
    text: str

    @property
    def kind(self) -> str:
        """The kind of the example, which says what plays it; "" if nothing does."""
        if self.language == "text" and self.lines and all(map(_TYPED.match, self.lines)):
            return "typed"
        return KINDS.get(self.language, "")

    @property
    def lines(self) -> list[str]:
        """The lines of the example that are not blank or comments."""
        return [line for line in self.text.splitlines() if line.strip()]

    @property
    def place(self) -> str:
        """The place of the example, by which a person finds it."""
        return f"{self.page}:{self.line}"


def user_pages() -> list[Path]:
    """Return the README and all pages that users read."""
    pages = [page for page in sorted(PAGES.glob("*/*.md")) if page.name not in NOT_FOR_USERS]
    return [ROOT / "README.md", *pages]


@cache
def all_blocks() -> tuple[Block, ...]:
    """Return all fenced examples of pages that users read."""
    return tuple(block for page in user_pages() for block in blocks_of(page))


def blocks(kind: str) -> list[Block]:
    """Return the examples of a kind, in the order of their pages."""
    return [block for block in all_blocks() if block.kind == kind]


def blocks_of(page: Path) -> Iterator[Block]:
    """Return the fenced examples of a page, each with its heading."""
    heading, opened, inside = "", None, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opened is None:
            if fence:
                opened, inside = (number, fence), []
            elif line.startswith("#"):
                heading = line.lstrip("#").strip()
        elif fence and fence[2].startswith(opened[1][2]) and not fence[3]:
            yield _block(page.name, heading, opened[0], opened[1], inside)
            opened = None
        else:
            inside.append(line.removeprefix(opened[1][1]))
    assert opened is None, f"{page.name}:{opened[0]}: the example is not closed"


def typed_lines(text: str, *, editing: Callable[[], bool]) -> Iterator[str]:
    """Return the lines of an example without the remarks next to them.

    If the line editor is open (`editing`), a line is typed unchanged.
    """
    for line in text.splitlines():
        if editing():
            yield line
        elif line.strip() and not line.startswith(" "):
            yield _GAP.split(line, maxsplit=1)[0].rstrip()


def _block(page: str, heading: str, line: int, fence: re.Match[str], inside: list[str]) -> Block:
    language, _, name = fence[3].strip().partition(" ")
    text = "".join(f"{each}\n" for each in inside)
    return Block(
        page=page, line=line, heading=heading, language=language, name=name.strip(), text=text
    )
