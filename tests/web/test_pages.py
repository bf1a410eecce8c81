"""The pages for builders: who may open them, what they show, and that opening changes nothing."""

import hashlib
import html
import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

import evennia_ai
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.replay import turn_report
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.engine.text.plain_values import plain_value
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.store import model_calls
from evennia_ai.store.authored import cards, components, lorebooks, notes
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.model_calls import halts
from evennia_ai.web.site import running_game
from evennia_ai.web.site.column import column_of
from evennia_ai.web.site.page import HEADERS
from tests.npc.scripted_games import CARD
from tests.web.conftest import SECRET, acting

STATIC = Path(evennia_ai.__file__).parent / "static"
VENDOR = STATIC / "evennia_ai" / "vendor"
MOST_QUERIES = 80
MOST_NODES = 1500
MOST_BYTES = 150_000
"""The most bytes of a page with its scripts and style sheets, not compressed."""


def addresses(stage):
    npc = f"/ai/npc/{stage.npc.ai.ref}/"
    return (
        "/ai/",
        "/ai/?find=oren&show=today",
        npc,
        f"{npc}?turn=3",
        f"{npc}?with=component:weather.depth=4",
        f"{npc}turns/",
        f"{npc}character/",
        f"{npc}notes/",
        f"{npc}memory/",
        f"{npc}settings/",
        f"{npc}turn/5/",
        f"{npc}turn/5/?with=component:weather.depth=4",
        f"{npc}diff/4/5/",
        f"{npc}diff/5/5/?with=component:weather.depth=4",
        f"{npc}against/?with=component:weather.depth=4",
        "/ai/kept/",
        "/ai/lore/",
        "/ai/lore/harbour/",
        "/ai/lore/harbour/new/",
        "/ai/lore/harbour/entry/2/",
        "/ai/lore/harbour/lints/",
        "/ai/lore/harbour/turns/?npc=oren",
        "/ai/lore/harbour/revision/1/",
        f"{npc}next/?say=Oren, the lamp?",
        "/ai/cards/",
        "/ai/cards/oren/1/",
        f"/ai/cards/oren/1/preview/?npc={stage.npc.ai.ref}&grant=fields",
        "/ai/cards/new/",
        "/ai/cards/new/?like=innkeeper",
        "/ai/cards/oren/edit/",
        "/ai/kb/",
        "/ai/kb/library/?words=island",
        "/ai/kb/library/page/Saltholm/?revision=1",
        "/ai/kb/library/vault/",
        f"/ai/drafts/{stage.draft}/",
        "/ai/live/",
        "/ai/last/",
        f"{npc}turn/5/?pane=last",
    )


def turn_page(stage, number=5):
    return f"/ai/npc/{stage.npc.ai.ref}/turn/{number}/"


def as_json(browser, address):
    joined = "&" if "?" in address else "?"
    return browser.get(f"{address}{joined}format=json").json()


@pytest.mark.long
@pytest.mark.parametrize(("rank", "status"), [("", 302), ("Player", 404), ("Helper", 404)])
def test_pages_are_not_found_without_the_permission_of_builders(played, browser, rank, status):
    client = browser(rank)
    posts = [f"/ai/npc/{played.npc.ai.ref}/pause/", "/ai/live/stop/", turn_page(played)]
    posts += ["/ai/kb/library/vault/", f"/ai/drafts/{played.draft}/"]
    assert {client.get(address).status_code for address in addresses(played)} == {status}
    found = {client.get(address, {"format": "json"}).status_code for address in addresses(played)}
    found |= {client.post(address, {"do": "pause"}).status_code for address in posts}
    assert (found, dict(halts())) == ({404}, {})


@pytest.mark.long
@pytest.mark.parametrize("rank", ["Builder", "Admin"])
def test_builders_get_every_page_without_active_content(played, browser, rank):
    client = browser(rank)
    for address in addresses(played):
        answer = client.get(address)
        text = answer.content.decode()
        assert answer.status_code == 200, text
        assert {name: answer[name] for name in HEADERS} == HEADERS
        assert acting(text) == [], address
        assert len(re.findall(r"<[a-z]", text)) <= MOST_NODES, address
        files = re.findall(r'(?:src|href)="/static/([^"]+)"', text)
        weight = len(answer.content) + sum((STATIC / one).stat().st_size for one in files)
        assert files and weight <= MOST_BYTES, address


def test_words_of_players_are_shown_as_text(played, browser):
    text = browser("Admin").get(turn_page(played)).content.decode()
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in text


@pytest.mark.long
def test_opening_a_page_writes_nothing_and_makes_few_queries(played, browser):
    client = browser("Admin")
    for address in addresses(played):
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        asked = [q["sql"].lstrip().upper() for q in queries]
        written = [one for one in asked if not one.startswith(("SELECT", "WITH RECURSIVE"))]
        # A middleware of Evennia stores in the session who is logged in.
        ours = [q for q in written if "DJANGO_SESSION" not in q and "SAVEPOINT" not in q]
        assert ours == [], address
        assert len(queries) <= MOST_QUERIES, address


def test_list_of_npcs_makes_no_query_in_the_reactors_thread(played, browser, monkeypatch):
    asked = []

    def in_the_reactor(act):
        with CaptureQueriesContext(connection) as queries:
            told = act()
        asked.append(len(queries))
        return told

    monkeypatch.setattr(running_game, "_in_the_reactor", in_the_reactor)
    client = browser("Builder")
    for _ in range(2):
        assert client.get("/ai/").status_code == 200
    assert asked[1] == 0  # the limits read today's use once


def test_column_of_a_turn_equals_the_report_in_the_game(played, browser):
    client = browser("Admin")
    for number in range(1, 6):
        turn = turns.get_turn(played.npc.ai.ref, number)
        report = turn_report(turn.manifest, record_rows.records(turn.manifest.record_ids))
        told = as_json(client, turn_page(played, number))
        shown = json.loads(json.dumps(column_of(report)))
        assert {key: told[key] for key in shown} == shown
        text = html.unescape(client.get(turn_page(played, number)).content.decode())
        in_parts = {
            part["origin"]
            for one in shown["messages"]
            for part in one["parts"]
            if one["block"] not in ("history", "event") or one["injected"]
        }
        assert set(re.findall(r'data-origin="([^"]+)"', text)) == in_parts


def test_turn_page_says_why_lore_is_active_and_marks_the_words(played, browser):
    client = browser("Builder")
    told = as_json(client, turn_page(played, 1))
    why = {one["item"]: one["sentence"] for one in told["why"]}
    assert why["lore:harbour#0"] == 'because Anna said "ferry"'
    assert why["lore:harbour#5"] == "because it is always active"
    assert why["lore:harbour#2"] == "because 'harbour#0' mentions \"tide\""
    page = client.get(turn_page(played, 1)).content.decode()
    assert "Oren, when does the <mark>ferry</mark> sail?</p>" in page
    assert "The ferry sails with the <mark>tide</mark>." in page
    assert 'because Anna said <mark class="kind-E">ferry</mark>' in " ".join(page.split())


def test_list_of_npcs_shows_their_states(played, browser):
    [oren] = as_json(browser("Builder"), "/ai/?find=oren")["npcs"]
    assert oren["name"] == "Oren"
    assert (oren["last_turn"]["number"], oren["last_turn"]["outcome"]) == (5, "answered")
    assert as_json(browser("Admin"), "/ai/?show=failed")["npcs"] == []


def test_page_of_an_npc_has_the_status_and_the_log_of_the_commands(played, browser):
    from evennia_ai.npc.mind.status import npc_log

    played.npc.attributes.add("ai_settings", {"values": {"temperature": "warm"}})
    ref, client = played.npc.ai.ref, browser("Builder")
    told = as_json(client, f"/ai/npc/{ref}/")
    assert told["status"] == json.loads(json.dumps(plain_value(played.npc.ai.status())))
    log = as_json(client, f"/ai/npc/{ref}/turns/")["log"]
    assert log == json.loads(json.dumps(plain_value(npc_log(ref, 1, size=25))))
    (problem,) = told["status"]["problems"]
    assert html.escape(problem) in client.get(f"/ai/npc/{ref}/").content.decode()
    (listed,) = as_json(client, "/ai/?find=oren")["npcs"]
    assert listed == {name: told["status"][name] for name in listed}


def test_page_of_a_deleted_npc_shows_what_is_stored(played, browser):
    ref, client = played.npc.ai.ref, browser("Builder")
    played.npc.delete()
    status = as_json(client, f"/ai/npc/{ref}/")["status"]
    assert (status["name"], status["is_on"], status["now"]) == (f"#{ref}", False, None)
    assert status["last_turn"]["number"] == 5
    assert f"#{ref}" in client.get(f"/ai/npc/{ref}/").content.decode()


def test_list_of_npcs_is_filtered_by_their_turns(played, browser):
    client = browser("Builder")

    def shown(which):
        return [one["name"] for one in as_json(client, f"/ai/?show={which}")["npcs"]]

    everybody = shown("")
    assert shown("today") == ["Oren"]
    assert shown("paused") == []
    assert sorted(shown("never")) == sorted(set(everybody) - {"Oren"})


@pytest.mark.long
def test_list_of_thousands_of_npcs_makes_no_more_queries_than_one_of_fifty(played, browser):
    from evennia.objects.models import ObjectDB

    def grows_by(count):
        path = played.npc.typeclass_path
        ObjectDB.objects.bulk_create(
            ObjectDB(db_key=f"Guard {at:04}", db_typeclass_path=path) for at in range(count)
        )

    def asked(address):
        client.get(address)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(address).status_code == 200
        return len(queries)

    client = browser("Admin")
    addresses = ("/ai/", "/ai/?page=2", "/ai/?show=never", "/ai/live/", turn_page(played))
    grows_by(100)
    few = [asked(address) for address in addresses]
    grows_by(4900)
    assert [asked(address) for address in addresses] == few


def test_list_of_npcs_says_why_an_npc_is_silent(played, browser):
    from evennia_ai.store.model_calls import Used

    client = browser("Builder")
    [oren] = as_json(client, "/ai/?find=oren")["npcs"]
    assert (oren["state"], oren["now"]["waiting"], oren["silent_because"]) == ("idle", 0, "")
    played.npc.ai_enabled = False
    [oren] = as_json(client, "/ai/?find=oren")["npcs"]
    assert (oren["state"], oren["silent_because"]) == ("off", "it is switched off")
    assert "cannot answer: it is switched off" in client.get("/ai/").content.decode()
    assert model_calls.use_since(0.0) != Used()


def test_list_of_npcs_draws_cache_shares_as_a_line_with_numbers(played, browser, monkeypatch):
    ref = played.npc.ai.ref
    monkeypatch.setattr(
        "evennia_ai.store.model_calls.cache_shares", lambda refs, **_: {ref: [0, 40, 97]}
    )
    told = as_json(browser("Builder"), "/ai/?find=oren")
    assert (told["shares"], told["breaks"]) == ({ref: [0, 40, 97]}, {})
    text = browser("Admin").get("/ai/?find=oren").content.decode()
    assert "share from caches, oldest call first: 0 %, 40 %, 97 %" in text
    assert 'points="0.0,20.0 48.0,12.0 96.0,0.6"' in text


def test_list_of_npcs_says_what_broke_a_cache_when_its_share_is_low(played, browser, monkeypatch):
    ref = played.npc.ai.ref
    monkeypatch.setattr("evennia_ai.store.model_calls.cache_shares", lambda refs, **_: {ref: [3]})
    breaks = as_json(browser("Builder"), "/ai/?find=oren")["breaks"]
    manifest = turns.last_turn(ref).manifest
    assert breaks[ref].startswith(f"broken first by {manifest.broken_by} (")


def test_memory_page_hides_whispered_memories_from_builders(played, browser):
    from evennia_ai.engine.memory.memories import Memory
    from evennia_ai.store import memories

    ref = played.npc.ai.ref
    for text, learnt in (("Anna fears the tide.", "aloud"), ("The silver is below.", "private")):
        new = Memory(id=memories.NEW, text=text, created_at=1.0, learnt=learnt)
        memories.add_memory(ref, new, by=trusted("builder"), most=50)
    builder = browser("Builder").get(f"/ai/npc/{ref}/memory/").content.decode()
    assert "Anna fears the tide." in builder and "silver" not in builder
    told = as_json(browser("Admin"), f"/ai/npc/{ref}/memory/?find=silver")
    assert [(one["text"], one["private"]) for one in told["memories"]] == [
        ("The silver is below.", True)
    ]


def test_settings_page_shows_values_and_whether_they_are_the_npcs_own(played, browser):
    from evennia_ai.npc.npc_settings import change_settings

    change_settings(played.npc, by=trusted("builder"), mode="decide")
    told = as_json(browser("Builder"), f"/ai/npc/{played.npc.ai.ref}/settings/")["settings"]
    by_name = {one["name"]: one for one in told}
    assert by_name["mode"] == {"name": "mode", "value": "decide", "is_own": True}
    assert not by_name["tools"]["is_own"]


def test_live_page_shows_each_model_call(played, browser):
    told = as_json(browser("Builder"), "/ai/live/")["log"]
    ref = played.npc.ai.ref
    assert told["names"] == {ref: "Oren"}
    assert {(one["npc_ref"], one["role"], one["outcome"]) for one in told["calls"]} == {
        (ref, "speaker", told["calls"][0]["outcome"])
    }
    assert [one["turn"] for one in told["calls"]] == [5, 4, 3, 2, 1]


def test_live_page_shows_a_prompt_that_was_read_only_in_part(played, browser):
    client = browser("Builder")
    assert as_json(client, "/ai/live/")["log"]["cut"] == []
    row = replace(model_calls.newest_calls(1)[0], input_tokens=256, whole_tokens=5700)
    model_calls.add_call_alone(row)
    (cut,) = as_json(client, "/ai/live/")["log"]["cut"]
    assert (cut["npc_ref"], cut["turn"]) == (played.npc.ai.ref, 5)
    page = client.get("/ai/live/").content.decode()
    assert "the server read 256 of about 5700 tokens" in page
    assert "256 of about 5700, " in page
    model_calls.add_call_alone(replace(row, input_tokens=5700, whole_tokens=None))
    assert as_json(client, "/ai/live/")["log"]["cut"] == []


def test_pages_show_what_calls_cost_and_which_price_is_not_known(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    row = replace(model_calls.newest_calls(1)[0], turn=5, started_at=time.time())
    for nanodollars in (1_200_000_000, None):
        model_calls.add_call_alone(replace(row, nanodollars=nanodollars))
    cost = "$1.20, 1 call without a known price"
    assert cost in client.get("/ai/live/").content.decode()
    assert f"This month {cost}." in client.get(f"/ai/npc/{ref}/").content.decode()
    page = client.get(turn_page(played, 5)).content.decode()
    assert " out, $1.20, " in page
    assert " out, no known price, " in page
    assert [one["nanodollars"] for one in as_json(client, turn_page(played, 5))["calls"]] == [
        0,
        1_200_000_000,
        None,
    ]


def test_page_of_a_missing_thing_says_so_with_404(played, browser):
    client = browser("Builder")
    for address in (turn_page(played, 99), "/ai/npc/999999/", "/ai/lore/nowhere/"):
        answer = client.get(address)
        assert (answer.status_code, "there is no" in answer.content.decode()) == (404, True)


# Trials.


def depth_of(told, origin):
    return next(
        message["depth"]
        for message in told["messages"]
        if any(part["origin"] == origin for part in message["parts"])
    )


@pytest.mark.parametrize(
    ("origin", "now"),
    [("component:weather", 4), ("note:gulls", 1), ("lore:harbour#2", 0)],
)
def test_trial_edit_composes_the_turn_again_and_stores_nothing(played, browser, origin, now):
    client = browser("Builder")
    number = 3 if origin.startswith("lore") else 5
    address = turn_page(played, number)
    before = as_json(client, address)
    told = as_json(client, f"{address}?with={origin.replace('#', '%23')}.depth={now}")
    assert depth_of(before, origin) != now
    assert depth_of(told, origin) == min(now, sum(one["said"] for one in told["messages"]))
    assert told["sha256"] != before["sha256"] == as_json(client, address)["sha256"]


def test_trial_depth_beyond_the_history_is_its_top(played, browser):
    told = as_json(browser("Builder"), f"{turn_page(played)}?with=component:weather.depth=999")
    assert depth_of(told, "component:weather") == sum(one["said"] for one in told["messages"])


def test_component_switched_off_in_a_trial_is_not_in_its_prompt(played, browser):
    told = as_json(browser("Builder"), f"{turn_page(played)}?with=component:weather.off=yes")
    assert "component:weather" not in told["by_origin"]


@pytest.mark.parametrize(
    "line",
    [
        "component:weather.depth=-1",
        "component:weather.depth=4;drop",
        "component:weather.content=x",
        "component:nowhere.depth=1",
        "weather",
        "history.depth=3",
    ],
)
def test_invalid_trial_edit_is_an_error(played, browser, line):
    answer = browser("Builder").get(turn_page(played), {"with": line, "format": "json"})
    assert (answer.status_code, bool(answer.json()["problem"])) == (400, True)


def links(text, move):
    return re.findall(rf'<a href="([^"]+)"[^>]* data-move="{move}"', text)


def test_buttons_of_a_row_link_to_the_page_with_one_more_edit(played, browser):
    client = browser("Builder")
    text = client.get(turn_page(played)).content.decode()
    deeper = [one for one in links(text, "deeper") if "weather" in one]
    page = client.get(deeper[0].replace("&amp;", "&")).content.decode()
    assert "component:weather: now depth 3, order 100, of" in page
    [further] = re.findall(r'<a href="([^"]+)"[^>]* id="deeper-component:weather"', page)
    assert "component%3Aweather.depth%3D4" in further


def saved_form(client, address):
    """Return what the page's form sends."""
    text = client.get(address).content.decode()
    named = re.findall(r'<input type="hidden" name="(with|seen)" value="([^"]*)"', text)
    form = {}
    for name, value in named:
        form.setdefault(name, []).append(value)
    return form


def test_saved_trial_makes_a_revision_of_each_edited_text(played, browser):
    client = browser("Builder")
    ref = played.npc.ai.ref
    address = (
        f"{turn_page(played, 3)}?with=component:weather.depth=4&with=note:gulls.order=20"
        "&with=lore:harbour%232.depth=1"
    )
    answer = client.post(turn_page(played, 3), saved_form(client, address))
    assert answer.status_code == 302
    forget_everything()
    weather = components.COMPONENTS.revisions("weather")[-1].value
    note = notes.NOTES.current("gulls", of_npc(ref))
    [entry] = [
        one
        for one in as_json(client, "/ai/lore/harbour/?find=tide")["book"]["entries"]
        if one["uid"] == "2"
    ]
    assert (weather.injection_depth, note.order, entry["place"]) == (4, 20, "depth 1, system")
    assert components.COMPONENTS.revisions("weather")[-1].changed_by == "a-Builder"


def test_trial_is_not_saved_when_a_text_was_changed_meanwhile(played, browser):
    client = browser("Builder")
    address = f"{turn_page(played)}?with=note:gulls.order=20&with=component:weather.depth=4"
    form = saved_form(client, address)
    components.update("weather", content="It pours.", injection_depth=1, by=trusted("tilda"))
    answer = client.post(turn_page(played), form)
    forget_everything()
    assert (answer.status_code, "tilda" in answer.content.decode()) == (409, True)
    assert notes.NOTES.current("gulls", of_npc(played.npc.ai.ref)).order != 20
    assert components.COMPONENTS.revisions("weather")[-1].value.injection_depth == 1


def test_trial_of_an_entry_is_not_saved_when_its_lock_forbids_it(played, browser):
    lorebooks.set_entry_locks("harbour", "2", "edit:perm(Admin)", by=trusted("builder"))
    address = f"{turn_page(played, 3)}?with=lore:harbour%232.depth=1"
    form = saved_form(browser("Builder"), address)
    revision = lorebooks.get_book("harbour").revision
    assert browser("Admin").get(address).status_code == 200
    answer = again("Builder").post(turn_page(played, 3), form)
    assert (answer.status_code, lorebooks.get_book("harbour").revision) == (403, revision)


def again(rank):
    """Return another browser of the same account."""
    client = Client()
    client.force_login(get_user_model().objects.get(username=f"a-{rank}"))
    return client


def all_slices(client, address):
    """Return the turns of all slices. Each request returns only one slice."""
    told = as_json(client, address)
    found = told["turns"]
    while told["before"]:
        told = as_json(client, f"{address}&before={told['before']}")
        found += told["turns"]
    return found


def test_trial_is_compared_with_the_newest_turns(played, browser):
    address = f"/ai/npc/{played.npc.ai.ref}/against/?with=component:weather.depth="
    client = browser("Builder")
    as_it_was, moved = (all_slices(client, f"{address}{depth}") for depth in (2, 4))
    assert [one["number"] for one in moved] == [5, 4, 3, 2, 1]
    assert {one["outcome"] for one in as_it_was} == {"unchanged"}
    assert moved[0]["outcome"] == "changed"
    assert all(one["is_priced"] and one["nanodollars"] == 0 for one in moved)
    page = client.get(f"{address}4").content.decode()
    assert "A turn costs nothing: " in page


def test_diff_page_compares_two_turns_and_a_turn_with_a_trial(played, browser):
    ref = played.npc.ai.ref
    told = as_json(browser("Builder"), f"/ai/npc/{ref}/diff/4/5/")
    assert told["said_since"]
    moved = as_json(browser("Admin"), f"/ai/npc/{ref}/diff/5/5/?with=component:weather.depth=4")
    assert [(one["item"], one["depth"]) for one in moved["moved"]] == [("component:weather", 4)]


# Lore entries.


def form_of(client, address):
    """Return the fields of the page's form as a browser sends them."""
    text = client.get(address).content.decode()
    form = dict(
        re.findall(r'<input(?: type="hidden")?[^>]* name="([\w/]+)"[^>]* value="([^"]*)"', text)
    )
    areas = re.findall(r'<textarea[^>]* name="([\w/]+)"[^>]*>(.*?)</textarea>', text, re.DOTALL)
    # browsers drop the first line feed
    form |= {name: typed.removeprefix("\n") for name, typed in areas}
    for name, options in re.findall(r'<select[^>]* name="(\w+)">(.*?)</select>', text, re.DOTALL):
        form[name] = re.search(r'<option value="([^"]*)" selected>', options)[1]
    form |= dict.fromkeys(re.findall(r'name="(\w+)" checked', text), "on")
    return {name: html.unescape(value) for name, value in form.items()}


def test_new_entry_is_active_for_a_line_with_its_key(played, browser):
    client = browser("Builder")
    where = f"/ai/npc/{played.npc.ai.ref}/next/?say=Oren, the gull?"
    form = form_of(client, "/ai/lore/harbour/new/")
    answer = client.post(
        "/ai/lore/harbour/new/",
        {**form, "name": "the gull", "keys": "gull\nseagull", "content": "It steals bread."},
    )
    assert (answer.status_code, answer["Location"]) == (302, "/ai/lore/harbour/entry/6/?saved=1")
    woken = as_json(client, where)["lore"]
    assert "lore:harbour#6" in [one["item"] for one in woken]
    assert "It steals bread." in client.get(where).content.decode()
    quiet = as_json(client, where.replace("gull", "boat"))["lore"]
    assert "lore:harbour#6" not in [one["item"] for one in quiet]


def test_entry_form_changes_only_the_typed_fields(played, browser):
    client = browser("Builder")
    before = json.loads(lorebooks.get_book("harbour").source)["entries"]
    address = "/ai/lore/harbour/entry/2/"
    same = client.post(address, form_of(client, address))
    assert same.status_code == 302
    assert json.loads(lorebooks.get_book("harbour").source)["entries"] == before
    form = {**form_of(client, address), "depth": "3", "order": "7"}
    assert client.post(address, form).status_code == 302
    [entry] = as_json(client, "/ai/lore/harbour/?find=tide turns")["book"]["entries"]
    assert (entry["place"], entry["order"], entry["keys"]) == ("depth 3, system", 7, ["tide"])
    after = json.loads(lorebooks.get_book("harbour").source)["entries"]
    assert [one for at, one in enumerate(after) if at != 2] == [
        one for at, one in enumerate(before) if at != 2
    ]


def test_entry_form_shows_typed_words_again_when_saving_fails(played, browser):
    client = browser("Builder")
    address = "/ai/lore/harbour/entry/2/"
    form = {**form_of(client, address), "content": "New words.", "order": "first"}
    answer = client.post(address, form)
    assert (answer.status_code, "New words." in answer.content.decode()) == (400, True)
    assert "the order must be a number" in answer.content.decode()
    lorebooks.set_book_locks("harbour", "edit:perm(Admin)", by=trusted("builder"))
    assert client.post(address, {**form, "order": "3"}).status_code == 403
    assert "New words." not in lorebooks.get_book("harbour").source


def test_entry_form_reports_a_conflict_when_the_book_was_changed_meanwhile(played, browser):
    client = browser("Builder")
    address = "/ai/lore/harbour/entry/2/"
    form = {**form_of(client, address), "content": "Mine."}
    source = json.loads(lorebooks.get_book("harbour").source)
    source["entries"][0]["content"] = "Theirs."
    lorebooks.save_book("harbour", json.dumps(source), by=trusted("tilda"))
    answer = client.post(address, form)
    text = answer.content.decode()
    assert (answer.status_code, "tilda" in text, "Mine." in text) == (409, True, True)
    assert "Theirs." in lorebooks.get_book("harbour").source


# Cards.


def uploaded(client, card, **fields):
    content = json.dumps(card) if isinstance(card, dict) else card
    file = SimpleUploadedFile("tilda.json", content.encode())
    return client.post("/ai/cards/", {"file": file, **fields})


TILDA = {"spec": "chara_card_v3", "spec_version": "3.0", "data": {**CARD, "name": "Tilda"}}


def test_card_is_uploaded_approved_with_one_grant_and_assigned(played, browser):
    client = browser("Builder")
    waits = uploaded(client, TILDA)["Location"]
    assert cards.card_or_none("Tilda") is None
    told = as_json(client, waits)
    assert (told["waits"], told["report"]["identity"]["name"]) == (True, "Tilda")
    text = client.get(waits).content.decode()
    assert 'name="grant" value="fields"' in text
    done = client.post(
        waits, {"do": "approve", "grant": ["fields"], "seen": told["state"]["newest"]}
    )
    card = cards.card_or_none("Tilda")
    assert (done.status_code, card.grants) == (302, frozenset({"fields"}))
    client.post(done["Location"], {"do": "assign", "npc": "oren"})
    assert cards.card_of(played.npc.ai.ref).name == "Tilda"
    assert client.post(done["Location"], {"do": "assign", "npc": "nobody"}).status_code == 400


def test_card_is_created_edited_and_assigned_on_the_pages(played, browser):
    client = browser("Builder")
    made = client.post("/ai/cards/new/", {"name": "Mira", "description": "Mira sells herbs."})
    assert (made.status_code, made["Location"]) == (302, "/ai/cards/Mira/edit/")
    form = form_of(client, "/ai/cards/Mira/edit/")
    assert form["description"].strip() == "Mira sells herbs."
    typed = {"personality": "Dry.\r\nKind.", "greeting/new": "Herbs?", "tags": "herbs, quay"}
    assert client.post("/ai/cards/Mira/edit/", {**form, **typed}).status_code == 302
    card = parsed_card(cards.get_card("Mira"))
    assert (card.personality, card.alternate_greetings) == ("Dry.\nKind.", ("Herbs?",))
    assert (card.tags, card.description) == (("herbs", "quay"), "Mira sells herbs.")
    number = cards.get_card("Mira").revision
    client.post(f"/ai/cards/Mira/{number}/", {"do": "assign", "npc": "Oren"})
    model = played.talks_with("Thyme.")
    played.says(played.anna, "Oren, what do you sell?")
    assert "Mira sells herbs." in "\n".join(m.content for m in model.requests[-1].messages)


def test_card_form_without_changes_makes_no_revision(played, browser):
    client = browser("Builder")
    before = cards.get_card("oren")
    assert client.post("/ai/cards/oren/edit/", form_of(client, "/ai/cards/oren/edit/")).status_code
    assert cards.get_card("oren") == before


def test_card_form_shows_typed_words_again_when_saving_fails(played, browser):
    client = browser("Builder")
    twice = client.post("/ai/cards/new/", {"name": "oren", "description": "Typed words."})
    assert (twice.status_code, "Typed words." in twice.content.decode()) == (400, True)
    form = form_of(client, "/ai/cards/oren/edit/")
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": {**CARD, "nickname": "Ned"}}
    cards.save_card("oren", json.dumps(data), by=trusted("tilda"))
    answer = client.post("/ai/cards/oren/edit/", {**form, "personality": "Typed words."})
    text = answer.content.decode()
    assert (answer.status_code, "tilda" in text, "Typed words." in text) == (409, True, True)
    assert parsed_card(cards.get_card("oren")).personality == "Dry."


def test_import_can_be_rejected(played, browser):
    client = browser("Builder")
    waits = uploaded(client, TILDA, name="Tilda again")["Location"]
    assert client.post(waits, {"do": "reject", "seen": "1"}).status_code == 302
    assert as_json(client, "/ai/cards/")["waiting"] == []
    assert cards.card_or_none("Tilda again") is None


@pytest.mark.parametrize("content", ["", "[]", "{", '{"spec": "chara_card_v3"}'])
def test_file_that_is_no_card_is_refused(played, browser, content):
    client = browser("Builder")
    assert uploaded(client, content).status_code == 400
    assert client.post("/ai/cards/", {}).status_code == 400
    assert as_json(client, "/ai/cards/")["waiting"] == []


def test_hostile_card_is_shown_as_text_in_its_report(played, browser):
    client = browser("Builder")
    for words in ("<script>alert(1)</script>", "\u202egnp.exe", '"><img src=x onerror=alert(1)>'):
        data = {**CARD, "name": "Mallory", "creator": words, "description": words}
        answer = uploaded(client, {**TILDA, "data": data})
        text = client.get(answer["Location"]).content.decode()
        assert "<script>alert" not in text and "<img" not in text and "\u202e" not in text


# Texts that locks hide.


@pytest.mark.long
def test_text_hidden_by_a_lock_is_on_no_page(played, browser):
    book = {
        "entries": [
            {
                "keys": ["lamp"],
                "content": SECRET,
                "enabled": True,
                "insertion_order": 1,
                "extensions": {},
                "use_regex": False,
            }
        ]
    }
    lorebooks.save_book("secrets", json.dumps(book), by=trusted("builder"))
    played.talks_with("Aye.")
    played.says(played.anna, "Oren, the lamp?")
    number = turns.last_turn(played.npc.ai.ref).number
    lorebooks.set_book_locks("secrets", "view:perm(Admin)", by=trusted("builder"))
    forget_everything()
    pages = [
        *addresses(played),
        turn_page(played, number),
        f"{turn_page(played, number)}?with=component:weather.depth=4",
        f"/ai/npc/{played.npc.ai.ref}/diff/5/{number}/",
        "/ai/lore/secrets/",
    ]
    builder, admin = browser("Builder"), browser("Admin")
    told = [builder.get(f"{one}").content.decode() for one in pages]
    told += [json.dumps(as_json(builder, one)) for one in pages]
    assert not any("under the lamp" in text for text in told)
    assert "under the lamp" in admin.get(turn_page(played, number)).content.decode()
    assert "under the lamp" in admin.get("/ai/lore/secrets/").content.decode()


@pytest.mark.long
def test_whispered_words_are_shown_only_to_admins_and_the_reading_is_logged(
    played, browser, logged
):
    played.talks_with("Under the ropes.")
    played.whispers(played.anna, "Oren, where is the silver?")
    number = turns.last_turn(played.npc.ai.ref).number
    builder, admin = browser("Builder"), browser("Admin")
    pages = [
        *addresses(played),
        turn_page(played, number),
        f"/ai/npc/{played.npc.ai.ref}/diff/5/{number}/",
    ]
    told = [builder.get(one).content.decode() for one in pages]
    told += [json.dumps(as_json(builder, one)) for one in pages]
    assert not any("silver" in text or "ropes" in text for text in told)
    assert not any("a-Builder" in line for line in logged)
    text = admin.get(turn_page(played, number)).content.decode()
    assert "silver" in text and "Under the ropes." in text
    [line] = [line for line in logged if "a-Admin" in line]
    assert f"reads conversation {turns.last_turn(played.npc.ai.ref).conversation.id} of NPC" in line


# Stops.


def test_builder_can_pause_and_resume_one_npc(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    client.post(f"/ai/npc/{ref}/pause/", {"do": "pause"})
    assert halts()[ref].halted_by == "a-Builder"
    assert [one["ref"] for one in as_json(client, "/ai/?show=paused")["npcs"]] == [ref]
    client.post(f"/ai/npc/{ref}/pause/", {"do": "resume"})
    assert ref not in halts()
    assert client.post(f"/ai/npc/{ref}/pause/", {"do": "dance"}).status_code == 400


def test_only_an_admin_can_stop_all_npcs(played, browser):
    assert browser("Builder").post("/ai/live/stop/", {"do": "stop"}).status_code == 403
    assert dict(halts()) == {}
    client = browser("Admin")
    client.post("/ai/live/stop/", {"do": "stop"})
    assert as_json(client, "/ai/live/")["game"]["stopped"]
    client.post("/ai/live/stop/", {"do": "start"})
    assert not as_json(client, "/ai/live/")["game"]["stopped"]


def test_form_of_a_foreign_page_changes_nothing(played, browser):
    client = browser("Admin", enforce_csrf_checks=True)
    assert client.post("/ai/live/stop/", {"do": "stop"}).status_code == 403
    assert client.get("/ai/live/stop/").status_code == 405
    assert dict(halts()) == {}


def test_last_page_opens_the_turn_of_the_npc_that_answered_last(played, browser):
    client, ref = browser("Builder"), played.npc.ai.ref
    assert as_json(client, "/ai/last/") == {"address": "", "pane": "last"}
    assert "No NPC has answered you yet" in client.get("/ai/last/").content.decode()
    account = get_user_model().objects.get(username="a-Builder")
    played.anna.db_account = account
    played.anna.save()
    told = as_json(client, "/ai/last/")["address"]
    assert told == f"/ai/npc/{ref}/turn/5/?pane=last"
    assert client.get("/ai/last/")["Location"] == told
    pane = client.get(told).content.decode()
    assert 'id="pane" hidden data-newest="/ai/last/?format=json"' in pane
    of_npc = client.get(f"/ai/last/?npc={ref}")["Location"]
    assert of_npc == f"/ai/npc/{ref}/turn/5/?pane={ref}"
    assert client.get("/ai/last/?npc=999999").status_code == 200


def test_live_page_answers_304_while_nothing_is_new(played, browser):
    client = browser("Builder")
    tag = as_json(client, "/ai/live/")["tag"]
    asked = {"If-None-Match": tag}
    assert html.escape(tag) in client.get("/ai/live/").content.decode()
    assert client.get("/ai/live/", headers=asked).status_code == 304
    played.says(played.anna, "Oren, and now?")
    assert client.get("/ai/live/", headers=asked).status_code == 200


# Files of other publishers.


def test_vendored_files_have_the_hashes_of_their_publishers():
    for library in json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8")):
        for file in library["files"]:
            content = (VENDOR / file["path"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"], file["path"]
    listed = {
        file["path"]
        for one in json.loads((VENDOR / "vendor.json").read_text(encoding="utf-8"))
        for file in one["files"]
    }
    there = {str(p.relative_to(VENDOR)) for p in VENDOR.rglob("*") if p.is_file()}
    assert there - listed == {"vendor.json"}
