"""Test that docs/run/offline.md shows the real answers of the demo's NPCs without a model."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.docs.fences import ROOT
from tests.docs.village import tagged

PAGE = ROOT / "docs" / "run" / "offline.md"
_ROW = re.compile(
    r"\| (?P<to>\w+) \| (?P<asked>.+?) \| (?P<answered>.+?) \| (?P<sensible>yes|no: .+) \|"
)


class Row(NamedTuple):
    """A row of the page's table: the NPC, the line and its answer."""

    to: str
    asked: str
    answered: str
    sensible: str


def rows(heading: str) -> list[Row]:
    """Return the rows of the table below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    section = section.partition("\n## ")[0]
    found = map(_ROW.fullmatch, section.splitlines())
    return [Row(**row.groupdict()) for row in found if row]


def answers(village: Any, asked: list[Row]) -> Iterator[str]:
    """Return what the builder of the village reads when asking one NPC after the other."""
    for to, line, *_ in asked:
        npc = tagged(f"npc:{to.casefold()}")
        village.builder.location = npc.location
        told = village.types(f"say {line}")
        said = [row.removeprefix(f"{to} ") for row in told.splitlines() if row.startswith(f"{to} ")]
        yield " ".join(row.removeprefix('says, "').removesuffix('"') for row in said)


@pytest.mark.long
@pytest.mark.parametrize(
    ("heading", "count", "most_odd"), [("Sixty questions", 60, 12), ("Twenty more", 20, 5)]
)
def test_offline_page_shows_the_answers_that_the_game_gives(
    village: Any, heading: str, count: int, most_odd: int
) -> None:
    written = rows(heading)
    assert len({(row.to, row.asked) for row in written}) == count
    assert list(answers(village, written)) == [row.answered for row in written]
    assert sum(row.sensible != "yes" for row in written) <= most_odd
