"""The page that previews a line, and the page with the newest turn."""

import json

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.senses.presence import FACTION
from evennia_ai.store.authored import lorebooks

RING = {
    "entries": [
        {
            "id": 0,
            "name": "ring",
            "keys": ["brandy"],
            "content": "The brandy lies in the cove.",
            "enabled": True,
            "insertion_order": 1,
            "extensions": {},
            "use_regex": False,
        }
    ]
}


@pytest.fixture
def newcomer(played):
    """Create an NPC that nobody has spoken with. Return it and its preview page."""
    wil = played.make("Wil", "evennia_ai.typeclasses.AINPC")
    wil.page = f"/ai/npc/{wil.ai.ref}/next/"
    return wil


def column(browser, address, **query):
    answer = browser.get(address, {"format": "json", **query})
    assert answer.status_code == 200, answer.content
    return answer.json()


def plays(client, *characters):
    """Give the account of a browser these characters, without playing one."""
    account = get_user_model().objects.get(pk=client.session["_auth_user_id"])
    account.db._playable_characters = list(characters)
    return account


@pytest.mark.long
@pytest.mark.parametrize("say", ["", "Wil, the lamp?", "<script>alert(1)</script> |lcquit|ltx|le"])
def test_line_can_be_tried_on_an_npc_that_nobody_has_spoken_with(newcomer, browser, say):
    client = browser("Builder")
    told = column(client, newcomer.page, say=say)
    last = told["messages"][-1]
    assert say in "".join(part["text"] for part in last["parts"]) or "script" in say
    page = client.get(newcomer.page, {"say": say})
    assert page.status_code == 200 and "<script>alert" not in page.content.decode()
    mind = client.get(newcomer.page.removesuffix("next/")).content.decode()
    assert newcomer.page in mind


@pytest.mark.parametrize("who", ["npc", "wil"])
def test_line_sees_a_faction_that_was_given_since_the_newest_turn(played, newcomer, browser, who):
    npc = played.npc if who == "npc" else newcomer
    lorebooks.save_book("ring", json.dumps(RING), by=trusted("builder"))
    lorebooks.LOREBOOKS.assign("ring", Scope(kind="faction", ref="ring"), by=trusted("builder"))
    client, page = browser("Builder"), f"/ai/npc/{npc.ai.ref}/next/"
    ask = {"say": "Where is the brandy?"}
    assert [one for one in column(client, page, **ask)["lore"] if "ring" in one["item"]] == []
    npc.tags.add("ring", category=FACTION)
    assert "lore:ring#0" in [one["item"] for one in column(client, page, **ask)["lore"]]
    entry = {**ask, "npc": f"#{npc.id}"}
    assert column(client, "/ai/lore/ring/entry/0/", **entry)["tried"]["wakes"]


def test_line_is_tried_as_the_viewers_own_character(played, newcomer, browser):
    client = browser("Builder")
    plays(client, played.anna)
    assert column(client, newcomer.page, say="Wil?")["messages"][-1]["speaker"] == "Anna"


def test_trying_a_line_stores_nothing(played, newcomer, browser):
    client = browser("Builder")
    plays(client, played.anna)
    column(client, newcomer.page, say="Wil?")
    before = [kind.objects.count() for kind in (models.Conversation, models.Record, models.Turn)]
    with CaptureQueriesContext(connection) as queries:
        column(client, newcomer.page, say="Wil, the lamp?")
    after = [kind.objects.count() for kind in (models.Conversation, models.Record, models.Turn)]
    asked = [one["sql"].lstrip().upper() for one in queries]
    written = [sql for sql in asked if sql.startswith(("INSERT", "UPDATE", "DELETE"))]
    assert (after, [sql for sql in written if "DJANGO_SESSION" not in sql]) == (before, [])


@pytest.mark.parametrize("ref", ["999999", "0", "abc", "99999999999999999999"])
def test_line_cannot_be_tried_on_a_missing_npc(played, browser, ref):
    assert browser("Builder").get(f"/ai/npc/{ref}/next/").status_code == 404


def test_line_cannot_be_tried_on_a_player(played, browser):
    assert browser("Builder").get(f"/ai/npc/{played.anna.id}/next/").status_code == 404


def test_last_page_finds_the_npc_that_answered_a_character_nobody_plays_now(played, browser):
    client = browser("Builder")
    assert column(client, "/ai/last/")["address"] == ""
    plays(client, played.ben, played.anna)
    where = f"/ai/npc/{played.npc.ai.ref}/turn/5/?pane=last"
    assert column(client, "/ai/last/")["address"] == where
    assert client.get("/ai/last/")["Location"] == where


def test_last_page_survives_a_character_that_was_deleted(played, browser):
    client = browser("Builder")
    gone = played.make("Gone", "evennia.objects.objects.DefaultCharacter")
    plays(client, gone, played.anna)
    gone.delete()
    assert column(client, "/ai/last/")["address"]
