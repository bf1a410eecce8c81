"""The page of regex scripts: it shows them inactive, and edits one field or all."""

import json

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.regex_scripts import SCRIPTS, save_script
from tests.web.conftest import HOSTILE, acting
from tests.web.test_pages import as_json

ME = trusted("tests")
ADDRESS = "/ai/scripts/"
RAW = {
    "scriptName": "cut",
    "findRegex": "/<b>(/",
    "replaceString": "\r\nx",
    "placement": [2],
    "of_tomorrow": 1,
}


def form(**fields):
    """Return the form as a browser sends it, without a field that a script does not change."""
    sent = {"kind": "game", "holder": "", "script": "cut", "seen": "1", "do": "save"}
    sent |= {"find": "/<b>(/", "replace": "\nx", "min_depth": "", "max_depth": ""}
    return sent | {"placement": ["ai_output"]} | fields


def test_page_saves_only_what_was_changed_and_refuses_old_forms(played, browser):
    save_script("cut", json.dumps(RAW), by=ME)
    client = browser("Builder")
    assert client.post(ADDRESS, form()).status_code == 302
    assert SCRIPTS.existing("cut").revision == 1
    assert client.post(ADDRESS, form(min_depth="3", prompt_only="on")).status_code == 302
    assert SCRIPTS.existing("cut").raw == {**RAW, "minDepth": 3, "promptOnly": True}
    for typed, status, told in (
        (form(max_depth="4"), 409, "another builder"),
        (form(seen="2", find="/(/"), 400, "never closed"),
        (form(seen="2", kind="book"), 400, "whose script"),
        (form(script="none"), 400, "no regex script"),
        (form(do="drop"), 400, "must be one of"),
    ):
        answer = client.post(ADDRESS, typed)
        assert answer.status_code == status, typed
        assert told in answer.content.decode(), typed
    assert client.post(ADDRESS, {**form(seen="2"), "do": "off"}).status_code == 302
    [shown] = as_json(client, ADDRESS)["lists"][0]["scripts"]
    assert (shown["is_on"], shown["min_depth"]) == (False, "3")
    assert browser("Player").get(ADDRESS).status_code == 404


def test_scripts_of_a_card_are_shown_inactive_and_edited_in_its_file(played, browser):
    script = {**RAW, "scriptName": HOSTILE, "replaceString": HOSTILE, "findRegex": "/a/"}
    data = {"name": "Mira", "description": "x", "extensions": {"regex_scripts": [script]}}
    source = json.dumps({"spec": "chara_card_v2", "spec_version": "2.0", "data": data})
    cards.save_card("mira", source, by=ME, grants=frozenset())
    client = browser("Builder")
    page = client.get(ADDRESS).content.decode()
    assert acting(page) == []
    assert "card/grant mira = regex" in page
    [shown] = as_json(client, ADDRESS)["lists"][-1]["scripts"]
    sent = form(kind="card", holder="mira", script=shown["script"], find="/b/", replace=HOSTILE)
    sent["seen"] = str(shown["seen"])
    assert client.post(ADDRESS, sent).status_code == 302
    stored = json.loads(cards.get_card("mira").source)["data"]["extensions"]["regex_scripts"]
    assert stored == [{**script, "findRegex": "/b/"}]


def test_conversation_shows_words_as_players_saw_them_and_the_record_stays(played, browser):
    shown = {**RAW, "findRegex": "/Aye/", "replaceString": "Yes", "markdownOnly": True}
    client, address = browser("Builder"), f"/ai/npc/{played.npc.ai.ref}/"
    before = [one for one in as_json(client, address)["chat"]["lines"] if one["is_own"]]
    save_script("cut", json.dumps(shown), by=ME)
    after = [one for one in as_json(client, address)["chat"]["lines"] if one["is_own"]]
    assert before
    assert [one["text"] for one in after] == [one["text"] for one in before]
    said = [one["acts"][0]["text"] for one in before]
    assert any(one.startswith("Aye") for one in said)
    assert [one["acts"][0]["text"] for one in after] == [one.replace("Aye", "Yes") for one in said]
