"""Test the first build of the demo in a new game."""

from typing import Any

import pytest
from django.conf import settings
from evennia.accounts.models import AccountDB

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import components
from tests.npc.demo.finding import tagged
from world import build_demo
from world.demo_content import read_content

pytestmark = pytest.mark.usefixtures("new_game")


@pytest.mark.long
def test_first_demo_build_prints_every_part_and_omits_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = build_demo.build()
    assert len(made) == len(capsys.readouterr().out.splitlines())
    assert not [line for line in made if "left out" in line]


@pytest.mark.long
def test_landing_is_a_new_room_if_limbo_was_changed(new_game: Any) -> None:
    new_game.db.desc = "Our own lobby."
    build_demo.build()
    assert tagged("room:landing") != new_game
    assert (new_game.key, new_game.db.desc) == ("Limbo", "Our own lobby.")


@pytest.mark.long
def test_demo_build_makes_no_accounts_without_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DEMO_PASSWORDS", None)

    assert "accounts was left out" in " ".join(build_demo.build())
    assert AccountDB.objects.count() == 0


@pytest.mark.long
def test_failed_part_of_the_demo_is_reported_and_built_at_the_next_start() -> None:
    components.create(read_content().components[2].changed(key="weather"), by=trusted("Tamsin"))
    first = build_demo.build()
    (line,) = (line for line in first if "left out" in line)
    assert line.startswith("component:mood was left out: id 1200 is already taken")
    assert "'weather'" in line
    components.COMPONENTS.remove("weather", by=trusted("Tamsin"))
    assert build_demo.build() == ["component mood"]
