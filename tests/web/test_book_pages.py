"""The pages about lorebooks: entries, bulk edits, lints, revisions and turns."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.npc.views.parse_cache import attached_book
from evennia_ai.store.authored import lorebooks
from evennia_ai.web.site.lore_turns import letter_of
from tests.web.test_pages import as_json

CANARY = "canary-4410"


def entries():
    return {entry.uid: entry for entry in attached_book(lorebooks.get_book("harbour")).entries}


def seen():
    return lorebooks.get_book("harbour").revision


def form_of(client, uid, **typed):
    """Return what the form of an entry sends if these fields were changed."""
    told = as_json(client, f"/ai/lore/harbour/entry/{uid}/")
    entry = told["entry"]
    given = {name: entry[name] for name in ("name", "logic", "content", "position", "order")}
    given |= {name: "\n".join(entry[name]) for name in ("keys", "secondary_keys")}
    given |= {name: "on" for name in ("constant", "enabled") if entry[name]}
    given["depth"] = "" if entry["depth"] is None else entry["depth"]
    return {**given, "seen": told["revision"], **typed}


def test_entry_form_saves_conditions_timers_and_groups(played, browser):
    client = browser("Builder")
    typed = {
        "field-sticky": "3",
        "field-chance": "40",
        "field-group": "ferries, boats",
        "field-npcs": "Oren",
        "field-when": "weather is_any rain, storm; hour at_least 20",
    }
    answer = client.post("/ai/lore/harbour/entry/2/", form_of(client, "2", **typed))
    assert answer.status_code == 302, answer.content.decode()
    entry = entries()["2"]
    assert (entry.timing.sticky, entry.grouping.names) == (3, ("ferries", "boats"))
    others = as_json(client, "/ai/lore/harbour/entry/2/")["others"]
    told = {one["word"]: one["says"] for one in others}
    assert (told["chance"], told["npcs"], told["sticky"]) == ("40", "npc.key is_any Oren", "3")
    assert "rain" in told["when"]
    back = form_of(client, "2", **{"field-sticky": "off", "field-when": "off"})
    client.post("/ai/lore/harbour/entry/2/", back)
    assert (entries()["2"].timing.sticky, entries()["2"].grouping.names) == (
        0,
        ("ferries", "boats"),
    )


@pytest.mark.parametrize(
    ("field", "text", "problem"),
    [
        ("sticky", "soon", "is not a number"),
        ("when", "rain", "it must be &lt;fact&gt; &lt;test&gt; &lt;value&gt;"),
        ("when", "hour more 20", "it must be &lt;fact&gt; &lt;test&gt; &lt;value&gt;"),
        ("chance", "900", "entry 2: chance must be"),
    ],
)
def test_entry_form_shows_an_invalid_field_again_as_typed(played, browser, field, text, problem):
    client, before = browser("Builder"), seen()
    answer = client.post(
        "/ai/lore/harbour/entry/2/", form_of(client, "2", **{f"field-{field}": text})
    )
    told = answer.content.decode()
    assert (answer.status_code, problem in told, f'value="{text}"' in told) == (400, True, True)
    assert seen() == before


def test_book_page_shows_its_tokens_and_which_entries_were_in_the_newest_prompt(played, browser):
    client = browser("Builder")
    told = as_json(client, "/ai/lore/harbour/")
    costs = {uid: ESTIMATE.count(entry.template.source) for uid, entry in entries().items()}
    assert told["totals"]["tokens"] == sum(
        costs[uid] for uid, one in entries().items() if one.enabled
    )
    awake = as_json(client, "/ai/lore/harbour/?show=awake")
    turn = as_json(client, f"/ai/npc/{told['newest']['ref']}/turn/{told['newest']['turn']}/")
    kept = {one["item"]: one["tokens"] for one in turn["kept"] if "lore:harbour#" in one["item"]}
    assert {f"lore:harbour#{one['uid']}" for one in awake["book"]["entries"]} == set(kept)
    assert told["newest"]["awake"] == len(kept) > 0
    assert told["newest"]["tokens"] == sum(kept.values())
    assert "active in the newest turn of Oren" in client.get("/ai/lore/harbour/").content.decode()


@pytest.mark.parametrize("show", ["on", "off", "constant", "keys"])
def test_book_page_filters_entries_by_state(played, browser, show):
    client = browser("Builder")
    client.post("/ai/lore/harbour/", {"seen": seen(), "entry": ["1"], "do": "off"})
    listed = as_json(client, f"/ai/lore/harbour/?show={show}")["book"]["entries"]
    states = {
        "on": lambda one: one["enabled"],
        "off": lambda one: not one["enabled"],
        "constant": lambda one: one["enabled"] and one["constant"],
        "keys": lambda one: one["enabled"] and not one["constant"],
    }
    every = as_json(client, "/ai/lore/harbour/?show=nothing such")["book"]["entries"]
    assert listed == [one for one in every if states[show](one)]
    assert 0 < len(listed) < len(every)


def test_bulk_edit_changes_ticked_entries_as_one_revision(played, browser):
    client, before = browser("Builder"), seen()
    two = list(entries())[:2]
    for do, extra in (("off", {}), ("set", {"field": "order", "value": "7"})):
        client.post("/ai/lore/harbour/", {"entry": two, "seen": seen(), "do": do, **extra})
    changed = entries()
    assert [(changed[uid].enabled, changed[uid].order) for uid in two] == [(False, 7)] * 2
    assert seen() == before + 2
    last = client.post(
        "/ai/lore/harbour/",
        {"entry": two, "seen": seen(), "do": "set", "field": "chance", "value": "50"},
    )
    assert last.status_code == 302
    assert lorebooks.LOREBOOKS.revisions("harbour")[-1].changed_by == "a-Builder"


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"do": "on", "entry": []}, 400),
        ({"do": "burn"}, 400),
        ({"do": "set", "field": "order", "value": "many"}, 400),
        ({"do": "set", "field": "nothing", "value": "1"}, 400),
        ({"do": "off", "seen": "0"}, 409),
        ({"do": "off", "seen": "x"}, 400),
        ({"do": "off", "entry": ["2", "999"]}, 400),
    ],
)
def test_invalid_bulk_edit_changes_nothing(played, browser, given, status):
    before = lorebooks.get_book("harbour")
    asked = {"entry": ["2"], "seen": before.revision, **given}
    assert browser("Builder").post("/ai/lore/harbour/", asked).status_code == status
    assert lorebooks.get_book("harbour") == before


def test_bulk_edit_with_a_locked_entry_changes_nothing(played, browser):
    lorebooks.set_entry_locks("harbour", "2", "edit:perm(Admin)", by=trusted("builder"))
    lorebooks.set_entry_locks("harbour", "3", "view:perm(Admin)", by=trusted("builder"))
    before, client = lorebooks.get_book("harbour"), browser("Builder")
    for uid, status in (("2", 403), ("3", 404)):
        asked = {"entry": ["1", uid], "seen": before.revision, "do": "off"}
        assert client.post("/ai/lore/harbour/", asked).status_code == status
    assert lorebooks.get_book("harbour") == before


def test_revision_page_shows_differences_and_reverts(played, browser):
    client, was = browser("Builder"), lorebooks.get_book("harbour")
    client.post("/ai/lore/harbour/", {"entry": ["2"], "seen": was.revision, "do": "off"})
    told = as_json(client, f"/ai/lore/harbour/revision/{seen()}/")
    assert [(one["how"], one["text"]) for one in told["difference"]] == [
        ("head", "#2 state:"),
        ("gone", "on"),
        ("new", "off"),
    ]
    assert told["back"] == []
    back = f"/ai/lore/harbour/revision/{was.revision}/"
    assert [one["text"] for one in as_json(client, back)["back"] if one["how"] == "new"] == ["on"]
    stale = client.post(back, {"seen": str(was.revision)})
    assert (stale.status_code, "was changed by" in stale.content.decode()) == (409, True)
    assert client.post(back, {"seen": str(seen())}).status_code == 302
    assert lorebooks.get_book("harbour").source == was.source


def test_hidden_entries_are_on_no_revision_lint_or_turns_page(played, browser):
    book = json.loads(lorebooks.get_book("harbour").source)
    listed = book["entries"] if "entries" in book else book["data"]["entries"]
    one = dict(listed[0]) if isinstance(listed, list) else None
    assert one is not None
    one |= {"id": 77, "keys": [], "content": CANARY, "comment": CANARY, "name": CANARY}
    listed.append(one)
    lorebooks.save_book("harbour", json.dumps(book), by=trusted("builder"))
    lorebooks.set_entry_locks("harbour", "77", "view:perm(Admin)", by=trusted("builder"))
    client = browser("Builder")
    pages = [
        f"/ai/lore/harbour/revision/{seen()}/",
        "/ai/lore/harbour/revision/1/",
        "/ai/lore/harbour/lints/",
        "/ai/lore/harbour/turns/?npc=oren",
        "/ai/lore/harbour/?find=canary",
    ]
    told = [client.get(one).content.decode() for one in pages]
    told += [json.dumps(as_json(client, one)) for one in pages]
    hidden = [text.replace('value="canary"', "").replace('"find": "canary"', "") for text in told]
    assert not any("canary" in text or "77" in re_entries(text) for text in hidden)
    admin = browser("Admin").get(pages[0]).content.decode()
    assert CANARY in admin


def re_entries(text):
    """Return the uids of the entries to which a page links."""
    import re

    return re.findall(r"/entry/(\w+)/", text)


def test_entry_page_says_whether_a_line_activates_the_entry(played, browser):
    client = browser("Builder")
    tried = as_json(client, "/ai/lore/harbour/entry/2/?npc=oren&say=when is the tide?")["tried"]
    assert (tried["wakes"], "key 'tide'" in tried["why"]) == (True, True)
    silent = client.get("/ai/lore/harbour/entry/2/?npc=Oren&say=nice coat").content.decode()
    assert "Not activated" in silent and "no key in" in silent
    assert client.get("/ai/lore/harbour/entry/2/?npc=nobody&say=x").status_code == 400


def test_lints_page_shows_the_lints_of_a_book(played, browser):
    lorebooks.save_book(
        "doubtful",
        json.dumps(
            {
                "entries": [
                    {
                        "keys": [],
                        "content": "Nothing wakes it.",
                        "enabled": True,
                        "insertion_order": 1,
                        "extensions": {},
                        "use_regex": False,
                    }
                ]
            }
        ),
        by=trusted("builder"),
    )
    told = as_json(browser("Builder"), "/ai/lore/doubtful/lints/")
    assert told["count"] == len(told["lints"]) > 0
    assert told["lints"][0]["uid"] == "0"


def test_turns_page_shows_in_which_turns_entries_were_active(played, browser):
    client = browser("Builder")
    told = as_json(client, "/ai/lore/harbour/turns/?npc=oren")
    assert told["turns"] == [1, 2, 3, 4, 5]
    assert told["rows"] and {len(row["cells"]) for row in told["rows"]} == {5}
    cells = {row["uid"]: "".join(row["cells"]) for row in told["rows"]}
    assert cells["5"] == "CCCCC"  # the entry is constant
    landing = as_json(client, "/ai/lore/landing/turns/?npc=oren")
    assert "R" in landing["letters"]  # activated by the text of harbour#5
    assert told["never"] + len(told["rows"]) == len(entries())
    text = browser("Admin").get("/ai/lore/harbour/turns/?npc=oren").content.decode()
    assert "C</b> constant" in text


@pytest.mark.parametrize(
    ("reason", "kept", "letter"),
    [
        ("key 'lamp' in message 3 at 1-5", True, "K"),
        ("key 'lamp' in the text of ferry", True, "R"),
        ("constant", True, "C"),
        ("sticky: activated earlier and stays for 2 more turns, including this one", True, "s"),
        ("cooldown: inactive for 2 more turns", False, "c"),
        ("delay: inactive until 3 turns, 1 so far", False, "d"),
        ("rolled 71.0 with a chance of 30 %", False, "%"),
        ("lost group 'ferry' of 2 to night ferry (weight 100 of 140, rolled 0.10)", False, "g"),
        ("no key in the newest 4 messages", False, "."),
    ],
)
def test_letter_of_an_entry_depends_on_the_reason(reason, kept, letter):
    first = Verdict(stage="activate", item="lore:harbour#2", kept=kept, reason=reason)
    later = Verdict(stage="place", item="lore:harbour#2", kept=True, reason="in the message of x")
    assert letter_of([first, later] if kept else [first]) == letter


def test_letter_of_an_entry_left_out_by_the_budget_is_b():
    woken = Verdict(stage="activate", item="lore:harbour#2", kept=True, reason="constant")
    left = Verdict(stage="budget", item="lore:harbour#2", kept=False, reason="70 of 60 tokens")
    assert (letter_of([woken, left]), letter_of([])) == ("b", ".")
