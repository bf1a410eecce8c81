"""The home page: rooms, last words, problems, today's use and the stop of all NPCs."""

import html
import re
from dataclasses import replace
from urllib.parse import unquote

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.npc.mind import emergency
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.withheld.viewer import WHISPERED
from evennia_ai.store import model_calls
from evennia_ai.store.authored import cards
from evennia_ai.store.model_calls import halts
from tests.formats.cards.carriers import a_picture
from tests.web.conftest import HOSTILE, acting
from tests.web.test_card_pages import taken_in
from tests.web.test_pages import as_json

BUILDER = trusted("builder")


def problems(client):
    return [(one["text"], one["advice"]) for one in as_json(client, "/ai/")["problems"]]


def test_home_shows_rooms_with_their_npcs_and_last_words_with_their_listener(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    played.talks_with("The ferry sails at dusk.")
    played.says(played.anna, "Oren, when does the ferry sail?")
    told = as_json(client, "/ai/?find=oren")
    [room] = told["rooms"]
    assert (room["name"], room["ref"], room["npcs"]) == (
        played.room.key,
        str(played.room.id),
        [ref],
    )
    line = told["lines"][ref]
    assert (line["text"], line["to"]) == ("The ferry sails at dusk.", "Anna")
    page = client.get("/ai/?find=oren").content.decode()
    assert f'<p class="speech">{line["text"]}</p>' in page
    assert f"/ai/npc/{ref}/turn/6/" in page


def test_npcs_of_two_rooms_with_one_name_are_shown_apart(played, browser):
    from evennia.utils.create import create_object

    other = create_object("evennia.objects.objects.DefaultRoom", key=played.room.key)
    double = create_object(played.npc.typeclass_path, key="Oren's double", location=other)
    told = as_json(browser("Builder"), "/ai/?find=oren")
    assert [room["npcs"] for room in told["rooms"]] == [[played.npc.ai.ref], [str(double.id)]]


def test_home_shows_no_words_of_a_whisper_and_logs_no_reading(played, browser, logged):
    played.talks_with("It is under the plank.")
    played.whispers(played.anna, "Oren, where is the key?")
    client, ref = browser("Admin"), played.npc.ai.ref
    assert as_json(client, "/ai/")["lines"][ref]["text"] == WHISPERED
    assert "under the plank" not in client.get("/ai/").content.decode()
    assert not any("said in private" in str(line) for line in logged)


def test_home_shows_the_picture_of_a_card_and_a_letter_without_one(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    page = client.get("/ai/?find=oren").content.decode()
    assert re.search(r'class="face  hue-[0-9]+" aria-hidden="true">O<', page)
    number = taken_in("oren", a_picture())
    newest = cards.CARDS.newest_number("oren")
    cards.CARDS.approve("oren", number, grants=frozenset(), by=BUILDER, newest_seen=newest)
    told = as_json(client, "/ai/?find=oren")
    card = told["pictures"][ref]
    assert card["name"] == "oren"
    address = f"/ai/cards/oren/{card['revision']}/picture/"
    assert f'<img src="{address}" alt=""' in client.get("/ai/?find=oren").content.decode()


PROBLEMS = {
    "a failed turn": (
        lambda stage: fails(stage),
        "Oren could not answer in turn 6: ",
        "Look at the turn; ai/check in the game tests the model.",
    ),
    "a pause": (
        lambda stage: emergency.pause(stage.npc, by=BUILDER),
        "Oren is paused by builder.",
        "Let it answer again on its page.",
    ),
    "a prompt read in part": (
        lambda stage: model_calls.add_call_alone(
            replace(model_calls.newest_calls(1)[0], input_tokens=256, whole_tokens=5700)
        ),
        "Oren did not get its whole prompt in turn 5.",
        "The server read 256 of about 5700 tokens",
    ),
    "a wrong setting": (
        lambda stage: stage.npc.attributes.add("ai_settings", {"values": {"temperature": "hot"}}),
        "Oren: ",
        "ai/set Oren in the game changes its settings.",
    ),
    "a small window": (
        lambda stage: runtime().calls.small_windows.update(default="The window is small."),
        "The window is small.",
        "ai/check in the game tests it again.",
    ),
}


def fails(stage):
    stage.talks_with(RuntimeError("no route to the model"))
    stage.says(stage.anna, "Oren, are you there?")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problem_is_shown_as_a_sentence_with_what_to_do(played, browser, problem):
    client = browser("Builder")
    happens, text, advice = PROBLEMS[problem]
    assert not any(one.startswith(text) for one, _ in problems(client))
    happens(played)
    [(told, todo)] = [one for one in problems(client) if one[0].startswith(text)]
    assert todo.startswith(advice)
    page = client.get("/ai/").content.decode()
    assert html.escape(told) in page and html.escape(todo) in page


def test_home_page_is_unchanged_until_somebody_speaks(played, browser):
    client = browser("Builder")
    asked = {"If-None-Match": as_json(client, "/ai/")["tag"]}
    assert client.get("/ai/", headers=asked).status_code == 304
    played.says(played.anna, "Oren, and now?")
    assert client.get("/ai/", headers=asked).status_code == 200


def test_admin_stops_all_npcs_at_home_and_comes_back_there(played, browser):
    builder, admin = browser("Builder"), browser("Admin")
    assert "Stop all NPCs" not in builder.get("/ai/").content.decode()
    assert "Stop all NPCs" in admin.get("/ai/").content.decode()
    answer = admin.post("/ai/live/stop/", {"do": "stop", "back": "home"})
    assert (answer["Location"], set(halts())) == ("/ai/", {""})
    assert problems(builder)[0][0].startswith("All NPCs are stopped by a-Admin")
    admin.post("/ai/live/stop/", {"do": "start", "back": "home"})
    assert dict(halts()) == {}


def test_names_of_npcs_and_rooms_are_shown_as_text(played, browser):
    played.npc.key = played.room.key = HOSTILE
    assert acting(browser("Builder").get("/ai/").content.decode()) == []


@pytest.mark.parametrize("address", ["/ai/", "/ai/npc/1/turn/2/?with=component:mood.depth=4"])
def test_visitor_logs_in_and_comes_back_to_the_page(played, browser, address):
    client = browser("")
    answer = client.get(address)
    assert answer.status_code == 302
    login, _, back = answer["Location"].partition("?next=")
    assert login == "/auth/login/"
    assert unquote(back) == address
    assert client.get(address, {"format": "json"}).status_code == 404
    assert client.post(address).status_code == 404


@pytest.mark.parametrize(("rank", "is_there"), [("", False), ("Player", False), ("Builder", True)])
def test_menu_of_the_site_links_to_the_pages_for_builders_only(played, browser, rank, is_there):
    page = browser(rank).get("/").content.decode()
    assert "nav-link" in page
    assert ('href="/ai/"' in page) == is_there
