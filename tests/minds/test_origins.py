"""Which revision a text of a past prompt came from, by whom, and when."""

from dataclasses import replace

import pytest

from evennia_ai.minds.origins import source_of, told_by
from evennia_ai.prompt.components import PromptComponent, Scope
from evennia_ai.store.authored import components, notes
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import save_book
from tests.history.builders import a_conversation, a_prompt, manifest_of

ROOM = Scope(kind="room", ref="3")


@pytest.fixture
def manifest():
    """A turn made of a component in two scopes, a card, two books and the second of two notes."""
    components.create(PromptComponent(id=1201, key="mood", content="Tired."), by="Mara")
    components.create(PromptComponent(id=1201, key="mood", content="Wet.", scope=ROOM), by="Tam")
    save_card("oren", "{}", by="Ida")
    save_book("harbour#old", '{"entries": []}', by="Jon")
    notes.set_note("12", 0, by="Kim", depth=2)
    notes.set_note("12", 1, by="Lea", content="Be brief.")
    made_of = {
        "components": {"room:3": {"mood": 1}},
        "card": ["oren", 1],
        "books": [["harbour#old", "game", 1], ["own", "character", 1]],
        "notes": [[0, 1], [1, 1]],
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
        ("note:0", "note 1", "Lea"),
    ],
)
def test_the_source_of_a_text_is_named_with_its_author(manifest, origin, what, by):
    source = source_of(origin, manifest, npc_ref="12")
    assert (source.what, source.number, source.changed_by) == (what, 1, by)
    assert source.changed_at > 0


@pytest.mark.parametrize("origin", ["block:place", "history:7", "event", "lore:new#1", "note:9"])
def test_what_has_no_source_but_its_record_has_none(manifest, origin):
    assert source_of(origin, manifest, npc_ref="12") is None


@pytest.mark.req("S2-26")
def test_a_block_is_of_the_provider_that_told_it(manifest):
    (told,) = told_by("block:place", "Place: the quay.", manifest)
    (other,) = told_by("block:place", "Place: the inn.", manifest)
    assert told.by == "provider place"
    assert len(told.revision) == 12 and told.revision != other.revision


@pytest.mark.req("S2-26")
def test_a_block_of_the_games_own_is_of_its_function(manifest):
    made_of = {**manifest.inputs["made_of"], "providers": {"weather": "world.sky.weather"}}
    own = replace(manifest, inputs={"made_of": made_of})
    assert [told.by for told in told_by("block:weather", "Rain.", own)] == [
        "provider world.sky.weather"
    ]


@pytest.mark.req("S2-26")
def test_a_component_that_blocks_fill_names_each_of_them(manifest):
    inputs = {
        **manifest.inputs,
        "made_of": {**manifest.inputs["made_of"], "components": {"game:": {"entity_context": 0}}},
        "blocks": [["speaker", "Who speaks: Ann."], ["place", "Here."]],
        "filled": {"speaker": "entity_context"},
    }
    told = [*told_by("component:entity_context", "text", replace(manifest, inputs=inputs))]
    assert [one.by for one in told] == ["block:speaker, provider speaker"]


@pytest.mark.req("S2-26")
def test_a_text_of_this_program_is_of_no_card(manifest):
    assert source_of("component:runtime_guidance", manifest, npc_ref="12") is None
    told = [one.by for one in told_by("component:runtime_guidance", "text", manifest)]
    assert told == ["evennia_ai itself"]


@pytest.mark.parametrize("origin", ["component:mood", "component:scenario", "note:0", "history:7"])
def test_what_somebody_stored_or_said_was_told_by_nothing_else(manifest, origin):
    assert [*told_by(origin, "text", manifest)] == []


def test_a_turn_that_did_not_keep_its_sources_has_none(manifest):
    older = replace(manifest, inputs={})
    assert source_of("component:mood", older, npc_ref="12") is None


def test_a_source_whose_revisions_are_gone_is_not_made_up(manifest):
    from evennia_ai import models

    models.ComponentRevision.objects.all().delete()
    assert source_of("component:mood", manifest, npc_ref="12") is None
