"""Pages show a builder neither the book nor the uid of lore that a lock hides."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc.views.withheld.lore import alias_of
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns

SECRET = "The abbess is the smuggler Quill."


def entry(number, key, content):
    plain = {"id": number, "name": f"entry {number}", "keys": [key], "content": content}
    rest = {"enabled": True, "insertion_order": 1, "extensions": {}, "use_regex": False}
    return {**plain, **rest}


def save(name, *entries):
    lorebooks.save_book(name, json.dumps({"entries": list(entries)}), by=trusted("builder"))
    lorebooks.LOREBOOKS.assign(name, GAME, by=trusted("builder"))


@pytest.fixture
def locked(played):
    """Create a hidden book with an active entry, and a book whose entry is activated by its text.

    Returns the stage and the number of the turn.
    """
    save("vaultbook", entry(0, "ferry", SECRET), entry(77, "nothing", "Never active."))
    save("open", entry(0, "Quill", "A quill writes."))
    lorebooks.set_book_locks("vaultbook", "view:perm(Admin)", by=trusted("Ada"))
    played.talks_with(lambda request: "Aye.")
    played.says(played.anna, "Oren, when does the ferry sail?")
    forget_everything()
    return turns.last_turn(played.npc.ai.ref).number


def looks(stage, number):
    npc = f"/ai/npc/{stage.npc.ai.ref}/"
    return (
        *(npc, f"{npc}turn/{number}/", f"{npc}diff/{number - 1}/{number}/", "/ai/", "/ai/live/"),
        *(f"{npc}next/?say=ferry", f"{npc}turn/{number}/?with=component:weather.depth=4"),
        *(f"{npc}diff/{number}/{number}/?with=component:weather.depth=4", "/ai/lore/"),
        *("/ai/lore/open/", "/ai/lore/open/turns/", "/ai/lore/open/entry/0/?say=ferry&npc=oren"),
    )


@pytest.mark.long
@pytest.mark.parametrize("form", ["html", "json"])
def test_no_page_names_a_hidden_book_or_its_entries(played, locked, browser, form):
    builder, admin = browser("Builder"), browser("Admin")
    named = 0
    for address in looks(played, locked):
        joined = "&" if "?" in address else "?"
        told = builder.get(f"{address}{joined}format={form}&all=1").content.decode()
        assert "vaultbook" not in told and SECRET not in told, address
        named += "vaultbook" in admin.get(f"{address}{joined}format={form}").content.decode()
    assert named >= 5


def test_hidden_entry_is_in_no_prompt_that_is_shown_and_has_no_revision(played, locked, browser):
    client, npc = browser("Builder"), f"/ai/npc/{played.npc.ai.ref}/"
    told = client.get(f"{npc}turn/{locked}/?format=json").json()
    assert told["hidden"].startswith("Hidden from you: 2 entries of lore.")
    assert told["sha256"] != turns.get_turn(played.npc.ai.ref, locked).manifest.sha256
    assert "book:vaultbook" not in told["revisions"] and "book:open" in told["revisions"]
    made_of = client.get(f"{npc}turns/?format=json").json()["made_of"]
    assert "vaultbook" not in [one["name"] for one in made_of]
    assert client.get(f"{npc}diff/{locked - 1}/{locked}/?format=json").json()["hidden"]


def test_entry_activated_only_by_hidden_text_is_shown_as_inactive(played, locked, browser):
    """If it were shown as active, that would reveal what the hidden text says."""
    npc = f"/ai/npc/{played.npc.ai.ref}/"
    for rank, is_awake in (("Admin", True), ("Builder", False)):
        client = browser(rank)

        def told(address, client=client):
            return client.get(f"{address}format=json").json()

        kept = [one["item"] for one in told(f"{npc}turn/{locked}/?")["kept"]]
        assert ("lore:open#0" in kept) is is_awake
        tried = told("/ai/lore/open/entry/0/?say=ferry&npc=oren&")["tried"]
        assert tried["wakes"] is is_awake
        assert bool(told("/ai/lore/open/?")["newest"]["awake"]) is is_awake
        assert ("R" in told("/ai/lore/open/turns/?")["letters"]) is is_awake


def test_book_stays_visible_when_only_one_entry_is_hidden(played, locked, browser):
    lorebooks.set_book_locks("vaultbook", "", by=trusted("Ada"))
    lorebooks.set_entry_locks("vaultbook", "0", "view:perm(Admin)", by=trusted("Ada"))
    client = browser("Builder")
    told = client.get(f"/ai/npc/{played.npc.ai.ref}/turn/{locked}/?format=json").json()
    assert "book:vaultbook" in told["revisions"]
    assert "vaultbook#0" not in json.dumps(told) and SECRET not in json.dumps(told)


def test_alias_reveals_no_name_and_is_different_for_each_entry():
    names = {alias_of(f"lore:vaultbook#{number}") for number in range(50)}
    assert len(names) == 50 and not [one for one in names if "vault" in one]
