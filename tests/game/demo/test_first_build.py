"""The first build of the demo: what it makes, and what it leaves alone of what was there before."""

from typing import Any

import pytest
from django.conf import settings
from evennia.accounts.models import AccountDB
from evennia.utils.create import create_object
from evennia.utils.utils import class_from_module

from evennia_ai.store.authored import cards, components
from tests.game.demo.finding import tagged
from world import build_demo
from world.demo_content import read_content

pytestmark = pytest.mark.usefixtures("new_game")


def test_what_is_made_is_told_and_nothing_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    made = build_demo.build()
    assert len(made) == len(capsys.readouterr().out.splitlines())
    assert not [line for line in made if "left out" in line]


def test_what_was_there_before_the_first_build_is_left_alone() -> None:
    components.update("system_prompt", by="Tamsin", content="Speak in verse.")
    cards.save_card("oren", '{"name": "Orin"}', by="Tamsin")
    AccountDB.objects.create_user("anna", "", "her own password")
    build_demo.build()
    assert components.registry().get("system_prompt").content == "Speak in verse."
    assert cards.get_card("oren").source == '{"name": "Orin"}'
    assert AccountDB.objects.get_account_from_name("anna").check_password("her own password")


def test_a_first_room_that_somebody_changed_is_not_the_landing(new_game: Any) -> None:
    new_game.db.desc = "Our own lobby."
    build_demo.build()
    assert tagged("room:landing") != new_game
    assert (new_game.key, new_game.db.desc) == ("Limbo", "Our own lobby.")


def test_an_account_that_only_has_the_name_keeps_its_password() -> None:
    anna, _ = class_from_module(settings.BASE_ACCOUNT_TYPECLASS).create(
        username="anna", password="of-annas-own"
    )
    build_demo.build()

    assert anna.check_password("of-annas-own")


def test_without_passwords_there_are_no_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DEMO_PASSWORDS", None)

    assert "accounts was left out" in " ".join(build_demo.build())
    assert AccountDB.objects.count() == 0


def test_nobody_but_oren_stands_at_the_landing_before_somebody_logs_in(new_game: Any) -> None:
    superuser = create_object(
        settings.BASE_CHARACTER_TYPECLASS, key="admin", location=new_game, home=new_game
    )
    build_demo.build()
    assert [one.key for one in new_game.contents_get(content_type="character")] == ["Oren"]
    assert (superuser.location, superuser.db.prelogout_location) == (None, new_game)


def test_a_part_that_cannot_be_made_is_told_and_tried_again() -> None:
    components.create(read_content().components[2].changed(key="weather"), by="Tamsin")
    first = build_demo.build()
    (line,) = (line for line in first if "left out" in line)
    assert line.startswith("component:mood was left out: id 1200 is already taken")
    assert "'weather'" in line
    components.remove("weather", by="Tamsin")
    assert build_demo.build() == ["component mood"]
