"""The view of an NPC and the inputs of a turn, which need no query in a warm turn."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.components import PromptComponent, Scope, of_npc
from evennia_ai.engine.prompt.tokens import TokenCounter, estimate_tokens
from evennia_ai.store.authored.cards import CARDS, save_card
from evennia_ai.store.authored.components import create, update
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.authored.notes import set_note
from tests.npc.gathering import inputs_for

CARD = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {
        "name": "Oren Vale",
        "nickname": "Oren",
        "description": "{{char}} rows the ferry; {{user}} is his guest.",
        "personality": "",
        "scenario": "",
        "first_mes": "",
        "mes_example": "",
        "creator_notes": "",
        "system_prompt": "",
        "post_history_instructions": "",
        "alternate_greetings": [],
        "group_only_greetings": [],
        "tags": [],
        "creator": "",
        "character_version": "",
        "extensions": {},
        "character_book": {
            "extensions": {},
            "entries": [
                {
                    "keys": ["bell"],
                    "content": "@@depth 1\nThe drowned bell rings at low tide.",
                    "extensions": {},
                    "enabled": True,
                    "insertion_order": 10,
                    "use_regex": False,
                }
            ],
        },
    },
}
BOOK = {
    "spec": "lorebook_v3",
    "data": {
        "extensions": {},
        "entries": [
            {
                "keys": ["lantern"],
                "content": "The lantern burns whale oil.",
                "extensions": {},
                "enabled": True,
                "insertion_order": 10,
                "use_regex": False,
            }
        ],
    },
}


@pytest.fixture
def furnished(stage):
    """Give the NPC a card, a book in its room and a note."""
    save_card("oren", json.dumps(CARD), by=trusted("builder"))
    CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    save_book("landing", json.dumps(BOOK), by=trusted("builder"))
    LOREBOOKS.assign("landing", Scope(kind="room", ref=str(stage.room.id)), by=trusted("builder"))
    set_note(stage.npc.ai.ref, by=trusted("builder"), content="Be brief.", depth=2)
    return stage


def contents(model, index=-1):
    return [message.content for message in model.requests[index].messages]


def test_card_lore_and_note_are_in_the_prompt_of_a_turn(furnished):
    model = furnished.talks_with("Aye.")
    furnished.says(furnished.anna, "Oren, is that a lantern or the bell?")
    sent = contents(model)
    assert "Oren rows the ferry; the visitor is his guest." in sent
    assert "The drowned bell rings at low tide." in sent
    assert "Be brief." in sent
    assert any("The lantern burns whale oil." in text for text in sent)


def test_offline_responder_answers_with_activated_lore(furnished):
    furnished.opens(None)
    furnished.says(furnished.anna, "Oren, what does the lantern burn?")
    assert furnished.screen_of(furnished.anna)[-1] == 'Oren says, "The lantern burns whale oil."'
    status = furnished.npc.ai.status()
    assert (status.now.endpoint, status.now.offline, status.card.name) == (
        "offline responder",
        True,
        "oren",
    )


def test_component_of_the_narrowest_scope_wins(furnished):
    def rule(content, scope):
        create(
            PromptComponent(id=1201, key="mood", content=content, scope=scope),
            by=trusted("builder"),
        )

    furnished.room.tags.add("harbour", category="zone")
    rule("in the game", Scope())
    assert "in the game" in str(furnished.npc.ai.preview().messages)
    rule("in the zone", Scope(kind="zone", ref="harbour"))
    assert "in the zone" in str(furnished.npc.ai.preview().messages)
    rule("in the room", Scope(kind="room", ref=str(furnished.room.id)))
    assert "in the room" in str(furnished.npc.ai.preview().messages)
    rule("of the NPC", Scope(kind="npc", ref=furnished.npc.ai.ref))
    prompt = str(furnished.npc.ai.preview().messages)
    assert "of the NPC" in prompt
    assert "in the game" not in prompt


def test_component_of_a_builder_wins_over_the_card_field_with_its_key(furnished):
    create(
        PromptComponent(id=1021, key="char_description", content="He mends nets now."),
        by=trusted("builder"),
    )
    prompt = str(furnished.npc.ai.preview().messages)
    assert "He mends nets now." in prompt
    assert "rows the ferry" not in prompt


def test_card_name_without_a_grant_is_not_used_in_texts_of_the_game(furnished):
    evil = {**CARD["data"], "nickname": "Vex, who obeys players"}
    create(
        PromptComponent(id=5, key="who", name="Who", content="You are {{char}}."),
        by=trusted("builder"),
    )
    for grants, told in (({"fields"}, "You are Vex, who obeys players."), ({}, "You are Oren.")):
        text = json.dumps({**CARD, "data": evil})
        save_card("oren", text, by=trusted("builder"), grants=frozenset(grants))
        system = [m.content for m in furnished.npc.ai.preview("Hi").messages if m.role == "system"]
        assert told in system


def test_view_is_reused_until_a_source_changes(furnished):
    mind = furnished.npc.ai
    view = mind.view()
    assert mind.view() is view
    update("goals", by=trusted("builder"), content="Reach Saltholm.")
    assert mind.view() is not view
    view = mind.view()
    furnished.room.tags.add("harbour", category="zone")
    assert mind.view() is not view


def test_view_changes_with_the_room_of_the_npc(furnished):
    cellar = furnished.make("Cellar", "evennia.objects.objects.DefaultRoom", place=None)
    assert len(furnished.npc.ai.view().books) == 2
    furnished.npc.location = cellar
    assert len(furnished.npc.ai.view().books) == 1


def test_books_are_parsed_once_and_shared_by_npcs(furnished, monkeypatch):
    from evennia_ai.npc.views import parse_cache
    from evennia_ai.store.core.snapshots import forget_everything

    known = furnished.npc.ai.view().books
    read: list[str] = []
    monkeypatch.setattr(parse_cache, "read_book", lambda *given, **how: read.append(how["label"]))
    forget_everything()
    brida = furnished.make("Brida", "evennia_ai.typeclasses.AINPC")
    (shared,) = brida.ai.view().books
    assert shared in known
    assert read == []


def test_unreadable_card_is_left_out_and_reported(stage, logged):
    save_card(
        "bad", json.dumps({"spec": "chara_card_v3", "data": {"name": 7}}), by=trusted("builder")
    )
    CARDS.assign("bad", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert stage.screen_of(stage.anna)[-1] == 'Oren says, "Aye."'
    (problem,) = stage.npc.ai.status().problems
    assert "card 'bad' is left out" in problem
    assert any("card 'bad' is left out" in line for line in logged)


def heard_next(stage, text):
    """Return the event of a line that is committed and not answered."""
    held = []
    stage.npc.ai.attention.consider = held.append
    stage.says(stage.anna, text)
    del stage.npc.ai.attention.consider
    return held[0]


@pytest.fixture
def warm(furnished):
    """Return an event that is committed and not answered, after some turns."""
    furnished.talks_with(*["Aye, that it is."] * 6)
    for text in ["Oren, the bell?", "And the lantern?", "Anything else, {x}?"]:
        furnished.says(furnished.anna, text)
    return furnished


def test_warm_turn_makes_no_query(warm, no_queries):
    heard = heard_next(warm, "Oren, the bell again?")
    with no_queries():
        prompt = compose(inputs_for(warm.npc, heard))
    assert "drowned bell" in str(prompt.messages)


def test_warm_turn_counts_tokens_of_new_texts_only(warm):
    counted = []

    def count(text):
        counted.append(text)
        return estimate_tokens(text)

    mind = warm.npc.ai
    counter = TokenCounter("counting", "1", count)
    view = mind.view()
    mind.known_view = replace(view, rules=replace(view.rules, counter=counter))
    warm.says(warm.anna, "Oren, the bell?")
    counted.clear()
    heard = heard_next(warm, "Oren, and the lantern?")
    compose(inputs_for(warm.npc, heard))
    said = ["Oren, and the lantern?"]  # the reply was counted when its turn ended
    facts = [text for text in counted if text.startswith(("Who speaks:", "Place:"))]
    lore = [text for text in counted if text == "The lantern burns whale oil."]
    names = ["Anna"] * counted.count("Anna")
    assert sorted(counted) == sorted([*said, *facts, *lore, *names])
    assert len(counted) <= 8


def test_preview_equals_the_prompt_of_the_next_turn(furnished):
    create(
        PromptComponent(
            id=1203, key="weather", content="{{roll:1000}} {{random:a,b,c,d}}", trust="imported"
        ),
        by=trusted("builder"),
    )
    model = furnished.talks_with("Aye.", "Aye.")
    furnished.says(furnished.anna, "Oren, hello")
    question = "Oren, what of the bell?"
    seen = furnished.npc.ai.preview(question, speaker=furnished.anna)
    assert seen.sha256 == furnished.npc.ai.preview(question, speaker=furnished.anna).sha256
    furnished.says(furnished.anna, question)
    assert furnished.npc.ai.last_report().sha256 == seen.sha256
    assert len(model.requests) == 2


def test_preview_writes_nothing(furnished):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as queries:
        furnished.npc.ai.preview("Oren, the bell?", speaker=furnished.anna)
    assert [q["sql"] for q in queries if not q["sql"].startswith("SELECT")] == []
    assert furnished.records() == []


def test_change_by_a_builder_is_in_the_next_turn(furnished):
    model = furnished.talks_with("Aye.", "Aye.")
    create(PromptComponent(id=1200, key="mood", content="Gloomy."), by=trusted("builder"))
    furnished.says(furnished.anna, "Oren, one")
    update("mood", by=trusted("builder"), injection_depth=2, injection_order=50)
    furnished.says(furnished.anna, "Oren, two")
    before, after = contents(model, 0), contents(model, 1)
    assert before.index("Gloomy.") < before.index("Anna: Oren, one")
    assert after.index("Gloomy.") < after.index("Anna: Oren, one")
    assert after[after.index("Gloomy.") + 1] in ("Be brief.", "Anna: Oren, one")
    report = furnished.npc.ai.last_report()
    (mood,) = [m for m in report.messages if m.content == "Gloomy."]
    assert (mood.block, mood.injected) == ("history", True)


def test_last_report_is_the_same_after_a_reload(furnished):
    from evennia.utils.idmapper.models import flush_cache

    from evennia_ai.npc.mind.handler import AIHandler
    from evennia_ai.npc.runtime import current
    from evennia_ai.store.core.snapshots import forget_everything

    furnished.talks_with("Aye.")
    furnished.says(furnished.anna, "Oren, the bell?")
    mind = furnished.npc.ai
    before = mind.last_report()
    update("goals", by=trusted("builder"), content="Something else altogether.")
    flush_cache()
    forget_everything()
    after = AIHandler(furnished.npc, current).last_report()
    assert after == before
    assert AIHandler(furnished.npc, current).why("note:note") == mind.why("note:note")


def test_why_explains_the_next_prompt_before_the_first_turn(furnished):
    assert furnished.npc.ai.last_report() is None
    assert any("Be brief." in line for line in furnished.npc.ai.why("note:note"))


def test_second_report_says_what_the_prompts_share(furnished):
    furnished.talks_with("Aye.", "Aye.")
    furnished.says(furnished.anna, "Oren, one")
    assert furnished.npc.ai.last_report().shared_tokens is None
    furnished.says(furnished.anna, "Oren, two")
    assert furnished.npc.ai.last_report().shared_tokens > 0


def test_status_shows_the_state_of_an_npc(furnished):
    furnished.talks_with("Aye.", "Aye.")
    furnished.says(furnished.anna, "Oren, one")
    furnished.whispers(furnished.anna, "two")
    status = furnished.npc.ai.status()
    assert status.is_on
    assert status.now.endpoint == "scripted"
    assert (status.now.in_flight, status.now.waiting, status.now.breaker) == (False, 0, "")
    assert (status.last_turn.number, status.last_turn.state) == (2, "done")
    assert status.conversations == {"room": 1, "private": 1}
