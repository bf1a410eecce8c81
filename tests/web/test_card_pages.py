"""The pages about cards: changes, previews, greetings, pictures and downloads."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.card_files import card_file
from tests.formats.cards.carriers import a_picture, an_archive
from tests.npc.scripted_games import CARD
from tests.web.test_pages import TILDA, as_json, uploaded

WORDS = "Tilda counts every plank."


def taken_in(name, content):
    """Import a card of these bytes and return the number of the import."""
    return cards.import_card(name, card_file(content, load_card(content)), by=trusted("builder"))


def content_of(answer):
    return b"".join(answer.streaming_content)


def test_import_page_shows_changes_field_by_field(played, browser):
    client = browser("Builder")
    changed = {**TILDA, "data": {**CARD, "personality": "Dry. Warm.", "tags": ["ferryman", "sea"]}}
    waits = uploaded(client, changed, name="oren")["Location"]
    told = [(one["how"], one["text"]) for one in as_json(client, waits)["difference"]]
    assert ("new", "Warm.") in told and ("new", "sea") in told
    assert ("head", "personality:") in told and ("head", "tags:") in told
    assert ("gone", "Dry.") not in told
    assert "What it changes" in client.get(waits).content.decode()
    assert as_json(client, "/ai/cards/oren/1/")["difference"] == []


def test_preview_page_shows_the_prompt_with_a_card_and_its_grants(played, browser):
    client, before = browser("Builder"), cards.get_card("oren")
    data = {**CARD, "name": "Tilda", "nickname": "", "description": WORDS}
    waits = uploaded(client, {**TILDA, "data": data})["Location"]
    told = as_json(client, f"{waits}preview/?npc=oren&grant=fields")
    assert (told["npc"], told["turn"], told["granted"]) == ("Oren", 5, ["fields"])
    origins = {part["origin"]: part["text"] for m in told["messages"] for part in m["parts"]}
    assert WORDS in "\n".join(origins.values())
    bare = as_json(client, f"{waits}preview/?npc=oren")
    assert bare["granted"] == [] and bare["sha256"] != told["sha256"]
    text = client.get(f"{waits}preview/?npc=oren").content.decode()
    assert 'name="grant" value="fields">' in text
    assert cards.get_card("oren") == before and cards.card_or_none("Tilda") is None


def test_preview_page_shows_an_error_without_an_npc(played, browser):
    client = browser("Builder")
    waits = uploaded(client, TILDA)["Location"]
    for asked in ("", "?npc=nobody"):
        assert client.get(f"{waits}preview/{asked}").status_code == 400


def test_card_page_sets_the_greeting_of_an_npc(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    seen = cards.get_card("oren").revision
    here = f"/ai/cards/oren/{seen}/"
    client.post(here, {"do": "greet", "npc": ref, "greeting": "1", "seen": seen})
    assert cards.assignment_of(ref).greeting == 1
    [player] = as_json(client, here)["players"]
    assert (player["name"], player["greeting"]) == ("Oren", 1)
    stale = client.post(here, {"do": "greet", "npc": ref, "greeting": "", "seen": seen - 1})
    assert (stale.status_code, cards.assignment_of(ref).greeting) == (409, 1)
    client.post(here, {"do": "greet", "npc": ref, "greeting": "", "seen": seen})
    assert cards.assignment_of(ref).greeting is None
    for given in ({"npc": ref, "greeting": "9"}, {"npc": "999999", "greeting": "0"}):
        assert client.post(here, {"do": "greet", "seen": seen, **given}).status_code == 400
    assert cards.assignment_of(ref).greeting is None


@pytest.mark.parametrize("form", ["json", "png", "charx"])
def test_card_can_be_downloaded_in_every_format(played, browser, form):
    content = a_picture(TILDA)
    number = taken_in("Tilda", content)
    answer = browser("Builder").get(f"/ai/cards/Tilda/{number}/export/{form}/")
    assert answer["Content-Disposition"] == f'attachment; filename="Tilda.{form}"'
    assert load_card(content_of(answer)).card.description == CARD["description"]


def test_download_of_a_missing_card_is_not_found(played, browser):
    assert browser("Admin").get("/ai/cards/oren/99/export/json/").status_code == 404
    assert browser("Player").get("/ai/cards/oren/1/export/json/").status_code == 404


def test_picture_of_a_card_is_served_only_as_an_image(played, browser):
    client = browser("Builder")
    number = taken_in("Tilda", a_picture(TILDA))
    answer = client.get(f"/ai/cards/Tilda/{number}/picture/")
    assert (answer["Content-Type"], answer["X-Content-Type-Options"]) == ("image/png", "nosniff")
    assert answer.content.startswith(b"\x89PNG")
    assert "/picture/" in client.get(f"/ai/cards/Tilda/{number}/").content.decode()
    html = taken_in("Page", an_archive(TILDA, [("assets/icon/main.png", b"<script>1</script>")]))
    assert client.get(f"/ai/cards/Page/{html}/picture/").status_code == 404
    assert client.get("/ai/cards/oren/1/picture/").status_code == 404
    assert json.loads(client.get("/ai/cards/oren/1/picture/?format=json").content)["status"] == 404
