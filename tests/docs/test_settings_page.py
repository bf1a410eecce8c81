"""Test that docs/reference/settings.md describes the profiles, roles and limits of the code."""

import dataclasses
import re
from pathlib import Path
from typing import Any

from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.services.llm.profiles import (
    FIELDS,
    MODEL_ROLES,
    ModelProfile,
    problem_of_profile,
    profiles_of,
    read_profiles,
    read_roles,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_settings_page_lists_every_card_limit_with_its_default() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Limits of card files")[2]
    section = page.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.M)
    told = {name: int(most) for name, most in rows}
    assert told == dataclasses.asdict(CardLimits())


def section(heading: str) -> str:
    """Return the text under a heading."""
    page = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    return page.partition("\n## ")[0]


def first_cells(table: str) -> list[str]:
    """Return the names in the first column of a table."""
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_settings_page_lists_every_role_and_profile_field() -> None:
    names = first_cells(section("Models: profiles and roles"))
    assert sorted(names) == sorted((*MODEL_ROLES, *FIELDS))


def test_profiles_on_the_settings_page_can_be_used() -> None:
    said: dict[str, Any] = {}
    (example,) = re.findall(
        r"^```python\n(.*?)^```", section("Models: profiles and roles"), re.DOTALL | re.MULTILINE
    )
    exec(example, said)
    given = read_profiles(said["EVENNIA_AI_PROFILES"], where="PROFILES")
    profiles = profiles_of(given, game=ModelProfile(name="default", client="offline"))
    assert [problem_of_profile(profile) for profile in profiles.values()] == [""] * 4
    roles = read_roles(said["EVENNIA_AI_MODEL_ROLES"], where="ROLES")
    assert {name for names in roles.values() for name in names} <= set(profiles)
