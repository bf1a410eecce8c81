"""The page of reports for the staff, and the page where players see their own data."""

from typing import Any

import pytest

from evennia_ai.npc.senses import choices
from evennia_ai.store.history.reports import add_report
from evennia_ai.store.history.turns import last_turn
from tests.web.conftest import HOSTILE, acting


@pytest.fixture
def owner(played: Any, browser: Any) -> Any:
    """Return the browser of a player, whose character is Anna."""
    client = browser("Player")
    played.anna.account = account = _account_of(client)
    account.db._playable_characters = [played.anna]
    played.whispers(played.anna, f"The canary sings. {HOSTILE}")
    return client


def _account_of(client: Any) -> Any:
    from django.contrib.auth import get_user_model

    return get_user_model().objects.get(pk=client.session["_auth_user_id"])


def _report(played: Any) -> int:
    turn = last_turn(played.npc.ai.ref)
    assert turn is not None
    return add_report(turn, words=HOSTILE, why="It was rude.", reporter_ref=str(played.anna.id))


def test_reports_are_listed_for_builders_with_a_link_to_the_turn(
    played: Any, owner: Any, browser: Any
) -> None:
    turn = last_turn(played.npc.ai.ref)
    _report(played)
    assert owner.get("/ai/reports/").status_code == 404
    page = browser("Builder").get("/ai/reports/").content.decode()
    assert f'href="/ai/npc/{played.npc.id}/turn/{turn.number}/"' in page
    assert acting(page) == []
    assert "It was rude." not in page  # the turn answered a whisper
    admin = browser("Admin")
    assert "It was rude." in admin.get("/ai/reports/").content.decode()
    [listed] = admin.get("/ai/reports/?format=json").json()["reports"]
    assert (listed["turn"], listed["why"], listed["words"]) == (
        turn.number,
        "It was rude.",
        HOSTILE,
    )
    assert admin.get(f"/ai/npc/{played.npc.id}/turn/{turn.number}/").status_code == 200


def test_player_sees_exports_and_erases_what_npcs_keep(played: Any, owner: Any) -> None:
    _report(played)
    page = owner.get("/ai/me/").content.decode()
    assert "The canary sings." in page
    assert acting(page) == []
    assert "/ai/npc/" not in page  # no page of builders
    [kept] = owner.get("/ai/me/?format=json").json()["characters"]
    lines = [one["text"] for one in kept["data"]["npcs"][0]["private"]]
    assert any("The canary sings." in line for line in lines)
    form = {"character": str(played.anna.id), "npc": str(played.npc.id)}
    asked = owner.post("/ai/me/", {**form, "do": "ask"}).content.decode()
    assert "This cannot be undone." in asked
    assert "The canary sings." in owner.get("/ai/me/?format=json").content.decode()
    done = owner.post("/ai/me/", {**form, "do": "forget"}).content.decode()
    assert "Erased the private conversations of Anna with Oren" in done
    after = owner.get("/ai/me/?format=json").content.decode()
    assert "canary" not in after
    assert "It was rude." not in after
    owner.post("/ai/me/", {"character": str(played.anna.id), "do": "forget"})


def test_player_reads_the_page_in_their_language(played: Any, owner: Any) -> None:
    choices.choose_language(_account_of(owner), "de")
    page = owner.get("/ai/me/").content.decode()
    assert '<html lang="de">' in page
    assert "Was NPCs von dir aufbewahren" in page
    form = {"character": str(played.anna.id), "do": "ask"}
    asked = owner.post("/ai/me/", form).content.decode()
    assert "Das lässt sich nicht rückgängig machen." in asked


def test_player_can_erase_nothing_of_others(played: Any, owner: Any) -> None:
    played.whispers(played.ben, "Ben's own secret.")
    for named in (
        {"character": str(played.ben.id)},
        {"character": ""},
        {"character": "x", "npc": "1"},
    ):
        assert owner.post("/ai/me/", {**named, "do": "forget"}).status_code == 302
    assert any("Ben's own secret." in body for _, _, body in played.records("private"))
    assert "Ben's own secret." not in owner.get("/ai/me/").content.decode()


def test_page_of_own_data_needs_a_login_and_no_ban(played: Any, owner: Any, browser: Any) -> None:
    stranger = browser("").get("/ai/me/")
    assert (stranger.status_code, "login" in stranger.url) == (302, True)
    account = _account_of(owner)
    account.is_active = False
    account.save()
    assert owner.get("/ai/me/", follow=False).status_code in (302, 404)
