"""docs/settings.md names every setting with its default and the id of its check."""

import ast
import dataclasses
import inspect
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from evennia_ai.cards.limits import CardLimits
from evennia_ai.llm.profiles import (
    FIELDS,
    MODEL_ROLES,
    ModelProfile,
    problem_of_profile,
    profiles_of,
    read_profiles,
    read_roles,
)
from evennia_ai.settings.game import SETTINGS, Conf

PAGE = Path(__file__).resolve().parents[2] / "docs" / "settings.md"
ROW = re.compile(r"^\| `(\w+)` \| `([^`]*)` \| (.+) \| (E\d+) \|$", re.MULTILINE)


def described() -> dict[str, str]:
    """What stands under each field of the model, on one line."""
    body = ast.parse(inspect.getsource(Conf)).body[0].body
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def test_the_page_lists_every_setting_as_the_model_tells_it() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    listed = [(name, ast.literal_eval(default), *row) for name, default, *row in rows]
    told = described()
    settings = SETTINGS.items()
    assert listed == [(one.full_name, one.default, told[name], one.id) for name, one in settings]


def test_the_page_lists_every_limit_of_a_card_with_its_default() -> None:
    page = PAGE.read_text(encoding="utf-8").partition("## Limits of card files")[2]
    section = page.partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", section, re.M)
    told = {name: int(most) for name, most in rows}
    assert told == dataclasses.asdict(CardLimits())


def section(heading: str) -> str:
    """The text under a heading."""
    page = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    return page.partition("\n## ")[0]


def first_cells(table: str) -> list[str]:
    """The names in the first column of a table's rows."""
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]


def test_the_page_lists_every_role_and_every_field_of_a_profile() -> None:
    names = first_cells(section("Models: profiles and roles"))
    assert sorted(names) == sorted((*MODEL_ROLES, *FIELDS))


def test_the_profiles_of_the_page_can_be_used() -> None:
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
