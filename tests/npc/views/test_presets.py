"""An assigned preset in prompts: its texts, switches, triggers and rules, also in past turns."""

import json

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    GAME,
    NO_GRANTS,
    PromptComponent,
    Scope,
    of_npc,
)
from evennia_ai.engine.prompt.contexts import AUTONOMOUS, CONVERSATION
from evennia_ai.npc.views.edits import AsOfToday
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.npc.views.turn_sources import source_of
from evennia_ai.npc.views.view import components_of, sources_of, view_of
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards, components, presets
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.record_rows import records
from tests.presets_in_play import LOOM, loom, without_secrets


def in_force(preset=LOOM, *, name="Loom", grants=ALL_GRANTS, scope=GAME):
    """Import, approve and assign a preset, and return it."""
    number = presets.import_preset(name, without_secrets(preset), by=trusted("Mira"))
    made = presets.PRESETS.approve(name, number, grants=grants, by=trusted("Mira"))
    presets.PRESETS.assign(name, scope, by=trusted("Mira"))
    return made


def switch(name="Loom", **switches):
    return presets.switch(presets.get_preset(name), switches, by=trusted("Mira"))


def play_card(npc_ref, **fields):
    data = {"name": "Oren Vale", "description": "OREN-IS a ferryman.", **fields}
    text = json.dumps({"spec": "chara_card_v3", "spec_version": "3.0", "data": data})
    save_card("oren", text, by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(npc_ref), by=trusted("builder"))


def view(npc_ref="12", *, scopes=(GAME,)):
    return view_of("Oren", sources_of(npc_ref, scopes, facts={}, conf=conf()))


def texts(view, context=CONVERSATION):
    """Return the enabled texts of a context by key."""
    members = (one.component for one in view.components_in(context, {}).compiled.members)
    return {one.key: one.content for one in members if one.enabled}


def test_preset_adds_its_prompts_and_keeps_those_of_the_game():
    before = texts(view())
    in_force()
    after = texts(view())

    assert after["card_system_prompt"].startswith("LOOM-MAIN")
    assert after["st_tone"].startswith("LOOM-TONE")
    assert "st_brief" not in after
    assert {key: text for key, text in after.items() if key in before} == before


def test_card_replaces_the_main_prompt_and_can_quote_it_as_original():
    in_force()
    play_card("12", system_prompt="OREN-RULES over {{original}}")
    made = texts(view())

    assert made["card_system_prompt"].startswith("OREN-RULES over LOOM-MAIN")
    assert made["char_description"] == "OREN-IS a ferryman."


def test_prompt_that_forbids_overrides_is_not_replaced_by_a_card():
    prompts = [{**one, "forbid_overrides": True} for one in LOOM["prompts"]]
    in_force(loom(prompts=prompts))
    play_card("12", system_prompt="OREN-RULES")
    assert texts(view())["card_system_prompt"].startswith("LOOM-MAIN")


def test_component_of_a_builder_replaces_the_one_of_the_preset():
    in_force()
    own = PromptComponent(id=15, key="st_tone", content="The builder's.")
    components.create(own, by=trusted("builder"))
    assert texts(view())["st_tone"] == "The builder's."


def test_texts_of_a_preset_without_grants_stay_inside_the_history():
    in_force(grants=NO_GRANTS)
    members = [one.component for one in view().components.compiled.members]
    of_preset = [one for one in members if "LOOM" in one.content]

    assert len(of_preset) >= 4
    assert all(one.is_contained for one in of_preset)
    assert view().rules.assembly.scenario_format == ""


def test_rules_of_a_preset_override_those_of_the_game_within_its_grants():
    in_force(loom(squash_system_messages=True, send_if_empty="Go on.", wi_format="<{0}>"))
    rules = view().rules.assembly
    assert (rules.ties, rules.squash, rules.stand_in) == ("role", True, "Go on.")
    assert (rules.lore_format, rules.history_cut) == ("<{0}>", "steps")

    presets.PRESETS.revoke("Loom", frozenset({"roles", "after_history"}), by=trusted("Mira"))
    rules = view().rules.assembly
    assert (rules.ties, rules.squash) == ("role", True)
    assert (rules.lore_format, rules.stand_in, rules.example_heading) == ("", "", "")


def test_prompt_with_a_trigger_appears_only_in_its_context():
    in_force()
    assert "st_ticks" not in texts(view(), CONVERSATION)
    assert texts(view(), AUTONOMOUS)["st_ticks"].startswith("LOOM-QUIET")


def test_sources_stay_the_same_until_the_preset_is_switched():
    in_force()
    sources = [sources_of("12", (GAME,), facts={}, conf=conf()) for _ in range(2)]
    assert sources[0].is_same(sources[1])

    switch(brief=True)
    now = sources_of("12", (GAME,), facts={}, conf=conf())
    assert not now.is_same(sources[0])
    assert texts(view_of("Oren", now))["st_brief"].startswith("LOOM-BRIEF")


def test_preset_of_the_narrowest_scope_applies():
    in_force()
    npc = Scope(kind="npc", ref="12")
    other = [{**one, "content": "OTHER"} for one in LOOM["prompts"] if one["identifier"] == "main"]
    in_force(loom(prompts=other), name="Other", scope=npc)

    assert texts(view(scopes=(GAME, npc)))["card_system_prompt"] == "OTHER"
    assert texts(view(scopes=(GAME,)))["card_system_prompt"].startswith("LOOM-MAIN")


def test_unreadable_preset_is_left_out_and_listed_as_a_problem(monkeypatch):
    number = presets.import_preset("Odd", '{"nothing": 1}', by=trusted("Mira"))
    presets.PRESETS.approve("Odd", number, grants=ALL_GRANTS, by=trusted("Mira"))
    presets.PRESETS.assign("Odd", GAME, by=trusted("Mira"))

    made = view()
    assert made.problems[0].startswith("preset 'Odd' is left out: ")
    assert "card_system_prompt" not in texts(made)
    sources = sources_of("12", (GAME,), facts={}, conf=conf())
    assert {one.key for one in components_of(sources, None)} == set(texts(made))


def test_as_of_today_omits_prompts_with_the_trigger_of_another_context(stage):
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren, well?")
    in_force()
    [turn] = turns_of(stage)
    today = AsOfToday()(PastReader().inputs(turn))
    members = [one.component for one in today.components.compiled.members if one.component.enabled]
    assert {"st_tone", "st_ticks"} & {one.key for one in members} == {"st_tone"}


def turns_of(stage):
    return list(turns_in_order(stage.npc.ai.ref))


def not_the_same(stage):
    reader = PastReader()
    return [
        turn.number
        for turn in turns_of(stage)
        if compose_again(turn, reader).sha256 != turn.manifest.sha256
    ]


@pytest.fixture
def played(stage):
    """Turns before, with and after a preset that was switched, changed and removed."""
    model = stage.talks_with(lambda request: f"Aye, {len(request.messages)}.")
    stage.says(stage.anna, "Oren, plain?")
    in_force(loom(squash_system_messages=True))
    stage.says(stage.anna, "Oren, with it?")
    switch(brief=True, tone=False)
    stage.says(stage.anna, "Oren, switched?")
    presets.PRESETS.revoke("Loom", frozenset({"roles"}), by=trusted("Mira"))
    stage.says(stage.anna, "Oren, revoked?")
    presets.PRESETS.unassign(GAME, by=trusted("Mira"))
    presets.PRESETS.remove("Loom", by=trusted("Mira"))
    stage.says(stage.anna, "Oren, gone?")
    forget_everything()
    stage.said = ["\n".join(m.content for m in request.messages) for request in model.requests]
    return stage


@pytest.mark.req("S2-03", "S2-30")
def test_past_turns_are_composed_again_with_the_preset_of_their_time(played):
    plain, first, switched, _, gone = played.said
    assert "LOOM" not in plain + gone
    assert "LOOM-TONE Be salty." in first
    assert "LOOM-BRIEF" in switched
    assert "LOOM-TONE" not in switched
    assert "LOOM-AFTER" in first and "LOOM-QUIET" not in first
    assert len(turns_of(played)) == 5
    assert not_the_same(played) == []
    for turn in turns_of(played):
        assert replay_turn(turn.manifest, records(turn.manifest.sent_ids)).is_same


def test_manifest_names_the_revision_of_the_preset_and_its_author(played):
    told = [turn.manifest.inputs["made_of"].get("preset") for turn in turns_of(played)]
    assert told == [None, ["Loom", 2], ["Loom", 3], ["Loom", 4], None]

    manifest = turns_of(played)[2].manifest
    source = source_of("component:st_brief", manifest, npc_ref=played.npc.ai.ref)
    assert (source.what, source.number, source.changed_by) == ("preset Loom", 3, "Mira")
    main = source_of("component:card_system_prompt", manifest, npc_ref=played.npc.ai.ref)
    assert main.what == "preset Loom"


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ({}, "field"),
        ({"names_behavior": 0}, "field"),
        ({"names_behavior": -1}, "none"),
        ({"names_behavior": 2}, "content"),
    ],
)
def test_names_rule_follows_the_preset_only_for_always_or_never(said, names):
    """The value 0 is for chats of two. In a room more than two may speak, so names are added."""
    preset = {name: value for name, value in LOOM.items() if name != "names_behavior"}
    in_force({**preset, **said})
    assert view().rules.assembly.names == names


def test_cached_sources_and_view_with_a_preset_make_no_query(db):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    in_force()
    play_card("12")
    forget_everything()
    first = sources_of("12", (GAME,), facts={}, conf=conf())
    with CaptureQueriesContext(connection) as queries:
        again = sources_of("12", (GAME,), facts={}, conf=conf())
        assert again.is_same(first)
        assert "st_tone" in texts(view_of("Oren", again))
    assert len(queries) == 0
