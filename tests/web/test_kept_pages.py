"""The pages about kept answers: keep, list, show and accept, and what an edit would change."""

import html
import re

import pytest
from django.test import override_settings

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.kept import read_case
from evennia_ai.store.authored import cards, components, lorebooks, notes
from evennia_ai.store.core.snapshots import forget_everything
from tests.web.conftest import HOSTILE, acting
from tests.web.test_pages import as_json, turn_page

BUILDER = trusted("builder")
NAME = "oren-the-bell"
CASE = f"/ai/kept/{NAME}/"


@pytest.fixture
def kept_folder(tmp_path):
    """Return the folder of kept cases, which does not exist yet."""
    with override_settings(EVENNIA_AI_KEPT_FOLDER=str(tmp_path / "kept")):
        yield tmp_path / "kept"


def keeps(client, stage, number=2, about="the bell"):
    return client.post(f"{turn_page(stage, number)}keep/", {"about": about})


def test_turn_is_kept_from_its_page(played, browser, kept_folder):
    client = browser("Builder")
    form = client.get(turn_page(played, 2)).content.decode()
    assert f'action="{turn_page(played, 2)}keep/"' in form
    assert keeps(client, played)["Location"] == f"{CASE}?kept=1"
    case = read_case(kept_folder / f"{NAME}.yaml")
    assert (case.about, case.reply) == ("the bell", "Aye, 16.")
    page = client.get(f"{CASE}?kept=1").content.decode()
    assert "Oren, what of the bell?" in page and "Aye, 16." in page
    assert "Kept: its prompt must stay as it was." in page


def test_changed_case_is_listed_shown_and_accepted(played, browser, kept_folder):
    client = browser("Builder")
    keeps(client, played)
    assert [one["state"] for one in as_json(client, "/ai/kept/")["cases"]] == ["same"]
    components.update("weather", content="It snows.", by=BUILDER)
    told = as_json(client, CASE)
    assert told["state"] == "differs"
    lines = [(one["how"], one["text"]) for one in told["difference"]]
    assert ("gone", "It drizzles.") in lines and ("new", "It snows.") in lines
    assert ">changed</span>" in client.get("/ai/kept/").content.decode()
    assert "Accept the prompt of today" in client.get(CASE).content.decode()
    assert client.post(CASE)["Location"] == f"{CASE}?accepted=1"
    assert as_json(client, CASE)["state"] == "same"
    answer = client.post(CASE)
    assert answer.status_code == 400
    assert "is the same as it was kept" in answer.content.decode()


def test_unreadable_case_is_listed_with_its_problem_as_text(played, browser, kept_folder):
    kept_folder.mkdir()
    (kept_folder / "broken.yaml").write_text(f"kept: 1\nabout: {HOSTILE}\n", encoding="utf-8")
    client = browser("Builder")
    for address in ("/ai/kept/", "/ai/kept/broken/"):
        page = client.get(address).content.decode()
        assert "cannot compose</span>" in page
        assert acting(page) == []
    assert "line" in as_json(client, "/ai/kept/broken/")["problem"]
    assert client.post("/ai/kept/broken/").status_code == 400


@pytest.mark.parametrize("name", ["nothing", "../secret", "..", "broken.yaml", "%00"])
def test_case_outside_of_the_folder_is_not_found(played, browser, kept_folder, name):
    kept_folder.mkdir()
    (kept_folder.parent / "secret.yaml").write_text("kept: 1\n", encoding="utf-8")
    assert browser("Builder").get(f"/ai/kept/{name}/").status_code == 404


def test_whisper_is_kept_and_shown_only_to_admins(played, browser, kept_folder):
    played.talks_with("Psst, 9.")
    played.whispers(played.anna, "Oren, the tunnel?")
    builder, admin = browser("Builder"), browser("Admin")
    assert "hide from you" in keeps(builder, played, 6, "tunnel").content.decode()
    assert not kept_folder.exists()
    address = keeps(admin, played, 6, "tunnel")["Location"].partition("?")[0]
    assert "the tunnel?" in admin.get(address).content.decode()
    for page in (builder.get(address), builder.get("/ai/kept/"), builder.post(address)):
        assert "the tunnel?" not in page.content.decode()
        assert "Psst" not in page.content.decode()
    assert not as_json(builder, address)["may_see"]


def test_hostile_words_of_a_kept_case_are_shown_as_text(played, browser, kept_folder):
    client = browser("Builder")
    address = keeps(client, played, 5, HOSTILE)["Location"]
    components.update("weather", content=HOSTILE, by=BUILDER)
    for page in (address, "/ai/kept/"):
        assert acting(client.get(page).content.decode()) == []
    assert "alert(" in client.get(address).content.decode()


ENTRY = "/ai/lore/harbour/entry/1/"
BELL = {
    "name": "the bell",
    "keys": "bell",
    "secondary_keys": "",
    "logic": "any",
    "content": "The bell is new.",
    "position": "after",
    "depth": "",
    "order": "1",
    "enabled": "on",
}


def test_form_of_an_entry_tells_which_kept_answers_an_edit_changes(played, browser, kept_folder):
    client = browser("Builder")
    components.update("weather", content="It is dry.", by=BUILDER)
    lorebooks.save_book("harbour", _certain_bell(), by=BUILDER)
    played.says(played.anna, "Oren, what of the bell?")
    keeps(client, played, 6)
    keeps(client, played, 1, "the ferry")
    book = lorebooks.get_book("harbour")
    form = {**BELL, "seen": book.revision, "check": "yes"}
    page = html.unescape(client.post(ENTRY, form).content.decode())
    assert "1 kept answer gets another prompt: show" in page
    assert f'href="{CASE}"' in page and "/ai/kept/oren-the-ferry/" not in page
    assert "new: </span>+ The bell is new." in page
    assert "The bell is new." in re.search(r"(?s)<textarea id=.content.*?</textarea>", page)[0]
    forget_everything()
    assert lorebooks.get_book("harbour") == book  # nothing was saved
    states = {one["name"]: one["state"] for one in as_json(client, "/ai/kept/")["cases"]}
    assert states[NAME] == "same"
    same = {**form, "content": "The bell is cracked.", "name": ""}
    assert "No kept answer gets another prompt" in client.post(ENTRY, same).content.decode()


def _certain_bell():
    import json

    from tests.npc.scripted_games import an_entry

    entries = [an_entry("ferry", "The ferry sails."), an_entry("bell", "The bell is cracked.")]
    return json.dumps({"entries": entries})


def test_refused_edit_is_told_before_it_is_saved(played, browser, kept_folder):
    client = browser("Builder")
    form = {**BELL, "seen": lorebooks.get_book("harbour").revision, "check": "yes"}
    for wrong in ({"seen": 99}, {"depth": "deep"}, {"order": HOSTILE}):
        page = client.post(ENTRY, {**form, **wrong}).content.decode()
        assert "This cannot be saved: " in page
        assert acting(page) == []


def test_turn_page_tells_which_kept_answers_a_trial_changes(played, browser, kept_folder):
    client = browser("Builder")
    keeps(client, played)
    address = f"{turn_page(played, 3)}?with=component:weather.depth=4"
    seen = re.findall(r'name="seen" value="([^"]+)"', client.get(address).content.decode())
    form = {"with": "component:weather.depth=4", "seen": map(html.unescape, seen), "check": "yes"}
    page = client.post(turn_page(played, 3), form).content.decode()
    assert "1 kept answer gets another prompt: show" in page
    assert "moved component:weather" in page
    forget_everything()
    assert components.registry().get("weather").injection_depth == 2


def test_every_form_of_texts_tells_which_kept_answers_its_edit_changes(
    played, browser, kept_folder
):
    client = browser("Builder")
    npc = f"/ai/npc/{played.npc.ai.ref}/"
    lorebooks.save_book("harbour", _certain_bell(), by=BUILDER)
    notes.set_note(played.npc.ai.ref, by=BUILDER, content="He yawns.")
    played.says(played.anna, "Oren, what of the bell?")
    keeps(client, played, 6)
    book = lorebooks.get_book("harbour").revision
    form_of_card = client.get("/ai/cards/oren/edit/").content.decode()
    fields = dict(re.findall(r'name="(seen|revision)" value="([^"]+)"', form_of_card))
    note = {"key": "note", "depth": "4", "order": "100", "every": "1", "enabled": "yes"}
    note |= {"seen": notes.notes_for(played.npc.ai.ref)[-1].revision}
    table = {
        f"{npc}character/": {"do": "save", **fields, "description": "A giant."},
        "/ai/cards/oren/edit/": {"do": "save", **fields, "description": "A giant."},
        f"{npc}notes/": {"do": "save", **note, "content": "He sings."},
        "/ai/lore/harbour/": {"do": "off", "entry": ["0", "1"], "seen": book},
        "/ai/lore/harbour/revision/1/": {"seen": book},
    }
    state = _texts(played)
    for address, form in table.items():
        page = html.unescape(client.post(address, {**form, "check": "yes"}).content.decode())
        assert "1 kept answer gets another prompt: show" in page, address
        refused = client.post(address, {**form, "check": "yes", "seen": 99}).content.decode()
        assert "This cannot be saved: " in refused, address
        forget_everything()
        assert _texts(played) == state, address
    removed = client.post(f"{npc}notes/", {**note, "do": "remove", "check": "yes"})
    assert "1 kept answer gets another prompt: show" in removed.content.decode()
    assert _texts(played) == state


def _texts(played):
    card, book = cards.get_card("oren"), lorebooks.get_book("harbour")
    return card.sha256, book.source, notes.notes_for(played.npc.ai.ref)
