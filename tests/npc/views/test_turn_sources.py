"""The sources of a turn as JSON in its manifest, and the author of each text."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.projection import project_records
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent, Scope
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.npc.views.turn_sources import origins_of_text, recorded_inputs, source_of
from evennia_ai.store.authored import components, notes
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import save_book
from tests.engine.history.builders import a_conversation, a_prompt, manifest_of

SAID = a_conversation(5)
PLAIN = Inputs(
    components=ComponentSet([]),
    rules=ComposeRules(budget=BudgetRules(limit_tokens=4000)),
    history=project_records(SAID[:4]),
)


def told(inputs: Inputs, *, event=SAID[4], now=SAID) -> dict:
    """Return the recorded inputs after a round trip through JSON."""
    made = recorded_inputs(inputs, event=event, now=project_records(now), reply_tokens=400)
    return json.loads(canonical_json(made))


def test_recorded_inputs_have_values_cut_event_blocks_and_limits():
    inputs = replace(
        PLAIN,
        values={"char": "Oren"},
        cut=7,
        blocks=(DynamicBlock(key="place", text="The quay."),),
    )

    values = told(inputs)
    assert (values["values"], values["cut"], values["event"]) == ({"char": "Oren"}, 7, "105")
    assert values["blocks"] == [["place", "The quay."]]
    assert (values["limit_tokens"], values["reply_tokens"]) == (4000, 400)


def test_recorded_history_has_its_first_and_last_record():
    assert told(PLAIN)["history"] == {
        "segment": 0,
        "first": "101",
        "last": "104",
        "left_out": [],
        "earlier": [0, 0, 0],
    }


def test_recorded_history_lists_events_that_waited_as_left_out():
    held = replace(PLAIN, history=project_records([*SAID[:1], *SAID[2:3]]))

    history = told(held, event=SAID[4])["history"]
    assert (history["first"], history["last"]) == ("101", "103")
    assert history["left_out"] == ["102", "104"]


def test_recorded_history_of_a_new_conversation_has_no_records():
    history = told(replace(PLAIN, history=project_records([])), event=SAID[0], now=SAID[:1])[
        "history"
    ]

    assert (history["first"], history["last"], history["left_out"]) == (None, None, [])


def test_recorded_lore_rules_are_only_the_changed_ones():
    rules = replace(PLAIN.rules, lore=ActivationRules(scan_depth=9))

    assert told(PLAIN)["lore"] == {}
    assert told(replace(PLAIN, rules=rules))["lore"] == {"scan_depth": 9}


def test_recorded_facts_of_every_type_are_json():
    facts = {"npc.tags": ("a", "b"), "tide": 2.5, "falls": True, "depth": float("nan")}

    assert told(replace(PLAIN, facts=facts))["facts"] == {
        "npc.tags": ["a", "b"],
        "tide": 2.5,
        "falls": True,
        "depth": "nan",
    }


def test_recorded_sources_have_the_room_text_and_the_hash_of_card_texts():
    sources = told(replace(PLAIN, sources={"room": "A quay.", "scenario": "Long."}))["sources"]

    assert sources["room"] == "A quay."
    assert list(sources["scenario"]) == ["sha256"]


ROOM = Scope(kind="room", ref="3")


@pytest.fixture
def manifest():
    """The manifest of a turn with a component in two scopes, a card, two books and two notes."""
    components.create(PromptComponent(id=1201, key="mood", content="Tired."), by=trusted("Mara"))
    components.create(
        PromptComponent(id=1201, key="mood", content="Wet.", scope=ROOM), by=trusted("Tam")
    )
    save_card("oren", "{}", by=trusted("Ida"))
    save_book("harbour#old", '{"entries": []}', by=trusted("Jon"))
    notes.set_note("12", by=trusted("Kim"), depth=2)
    notes.set_note("12", "note_01", by=trusted("Lea"), content="Be brief.")
    made_of = {
        "components": {"room:3": {"mood": 1}},
        "card": ["oren", 1],
        "preset": None,
        "books": [["harbour#old", "game", 1], ["own", "character", 1]],
        "notes": [["note", 1], ["note_01", 1]],
        "providers": {},
    }
    said = a_conversation(1)
    return replace(manifest_of(a_prompt(said), said), inputs={"made_of": made_of})


@pytest.mark.req("S2-26")
@pytest.mark.parametrize(
    ("origin", "what", "by"),
    [
        ("component:mood", "component mood of room:3", "Tam"),
        ("component:char_description", "card oren", "Ida"),
        ("lore:harbour#old#7", "lorebook harbour#old", "Jon"),
        ("lore:own#7", "card oren", "Ida"),
        ("note:note_01", "note note_01", "Lea"),
    ],
)
def test_source_of_returns_the_revision_and_its_author(manifest, origin, what, by):
    source = source_of(origin, manifest, npc_ref="12")
    assert (source.what, source.number, source.changed_by) == (what, 1, by)
    assert source.changed_at > 0


@pytest.mark.parametrize("origin", ["block:place", "history:7", "event", "lore:new#1", "note:9"])
def test_source_of_returns_none_for_a_text_without_revisions(manifest, origin):
    assert source_of(origin, manifest, npc_ref="12") is None


@pytest.mark.req("S2-26")
def test_origin_of_a_block_is_its_provider_with_a_hash_of_its_text(manifest):
    (told,) = origins_of_text("block:place", "Place: the quay.", manifest)
    (other,) = origins_of_text("block:place", "Place: the inn.", manifest)
    assert told.by == "provider place"
    assert len(told.revision) == 12 and told.revision != other.revision


@pytest.mark.req("S2-26")
def test_origin_of_a_block_of_the_game_is_the_path_of_its_function(manifest):
    made_of = {**manifest.inputs["made_of"], "providers": {"weather": "world.sky.weather"}}
    own = replace(manifest, inputs={"made_of": made_of})
    assert [told.by for told in origins_of_text("block:weather", "Rain.", own)] == [
        "provider world.sky.weather"
    ]


@pytest.mark.req("S2-26")
def test_origins_of_a_component_are_the_blocks_that_fill_it(manifest):
    inputs = {
        **manifest.inputs,
        "made_of": {**manifest.inputs["made_of"], "components": {"game:": {"entity_context": 0}}},
        "blocks": [["speaker", "Who speaks: Ann."], ["place", "Here."]],
        "filled": {"speaker": "entity_context"},
    }
    told = [*origins_of_text("component:entity_context", "text", replace(manifest, inputs=inputs))]
    assert [one.by for one in told] == ["block:speaker, provider speaker"]


@pytest.mark.req("S2-26")
def test_origin_of_a_text_of_this_program_is_evennia_ai(manifest):
    assert source_of("component:runtime_guidance", manifest, npc_ref="12") is None
    told = [one.by for one in origins_of_text("component:runtime_guidance", "text", manifest)]
    assert told == ["evennia_ai itself"]


@pytest.mark.parametrize("origin", ["component:mood", "component:scenario", "note:0", "history:7"])
def test_told_by_yields_nothing_for_stored_or_spoken_texts(manifest, origin):
    assert [*origins_of_text(origin, "text", manifest)] == []


def test_source_of_returns_none_for_a_manifest_without_sources(manifest):
    older = replace(manifest, inputs={})
    assert source_of("component:mood", older, npc_ref="12") is None


ORIGINS = ("component:mood", "component:char_description", "lore:own#1", "note:note", "block:sky")


@pytest.mark.parametrize(
    "gone", ["components", "card", "preset", "books", "notes", "providers", None]
)
def test_source_of_returns_none_when_the_manifest_lacks_a_kind_of_source(manifest, gone):
    made_of = manifest.inputs["made_of"]
    less = "x" if gone is None else {key: one for key, one in made_of.items() if key != gone}
    foreign = replace(manifest, inputs={"made_of": less})
    assert [source_of(origin, foreign, npc_ref="12") for origin in ORIGINS] == [None] * 5
    told = [one.by for origin in ORIGINS for one in origins_of_text(origin, "text", foreign)]
    assert told == ["provider sky"]


def test_source_of_returns_none_when_the_revisions_were_deleted(manifest):
    from evennia_ai import models

    models.Revision.objects.all().delete()
    assert source_of("component:mood", manifest, npc_ref="12") is None
