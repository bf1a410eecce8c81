"""Past turns composed again from their revisions: the same bytes after any later edits."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.components import Scope, of_npc
from evennia_ai.npc.recording import heard
from evennia_ai.npc.views.recomposing import (
    NotReadBackError,
    PastReader,
    compare_turn,
    compose_again,
    see_all,
)
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.conversations import begin_segment
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.windows import windows
from tests.npc.scripted_games import CARD, a_book, edit_everything, furnish, play

# A text of each source: card, its book, its greeting, other books, notes, dice, scopes.
FEATURES = (
    "Oren rows",
    "Lucky number",
    "Back so soon?",
    "Oren is cold.",
    "He keeps a lamp for her.",
    "Anna knows of the lamp.",
    "The ferry sails",
    "The bell is cracked.",
    "The tide turns at",
    "The fog took",
    "The boats were new.",
    "Always damp.",
    "Be brief.",
    "gulls.",
    "Oren waits.",
    "Speak as to Ben.",
)


def turns_of(stage):
    return list(turns_in_order(stage.npc.ai.ref))


def not_the_same(stage):
    """Return the numbers of the turns that are composed again with other bytes."""
    reader = PastReader()
    return [
        turn.number
        for turn in turns_of(stage)
        if compose_again(turn, reader).sha256 != turn.manifest.sha256
    ]


@pytest.fixture
def furnished(stage):
    stage.room.db.desc = "Planks, ropes and fog."
    furnish(stage)
    return stage


@pytest.mark.req("S2-03", "S2-30")
def test_all_turns_are_composed_again_after_all_sources_were_edited(furnished):
    model = furnished.talks_with(lambda request: f"Aye, {len(request.messages)}.")
    play(furnished)
    edit_everything(furnished)
    forget_everything()
    said = "\n".join(m.content for request in model.requests for m in request.messages)
    missing = [text for text in FEATURES if text not in said]
    assert (len(turns_of(furnished)), missing) == (16, [])
    assert not_the_same(furnished) == []


@pytest.mark.req("S2-30")
@pytest.mark.parametrize("content", ["He keeps a lamp for her.", "Another lamp."])
def test_turn_is_composed_again_when_two_of_its_books_have_one_name(stage, content):
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": CARD}
    save_card("oren", json.dumps(data), by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    (entry,) = CARD["character_book"]["entries"]
    name = CARD["character_book"]["name"]
    npc, anna = stage.npc.ai.ref, str(stage.anna.id)
    for scope in (Scope(kind="npc", ref=npc), Scope(kind="player", ref=anna)):
        a_book(name, [{**entry, "content": content}], scope)
        model = stage.talks_with("Aye.")
        stage.says(stage.anna, "Oren, the lamp?")
        said = "\n".join(m.content for m in model.requests[-1].messages)
        assert (said.count("He keeps a lamp"), said.count("Another")) == (1, content[0] == "A")
        labels = [label for label, *_ in turns_of(stage)[-1].manifest.inputs["made_of"]["books"]]
        assert len(labels) == len(set(labels))
        LOREBOOKS.unassign(scope, name, by=trusted("builder"))
        LOREBOOKS.remove(name, by=trusted("builder"))
    forget_everything()
    assert not_the_same(stage) == []


@pytest.mark.req("S2-30")
def test_turn_is_composed_again_with_its_game_time(stage, monkeypatch):
    text = "It is {{datetimeformat YYYY HH:mm}}."
    entry = {"keys": ["ferry"], "content": text, "enabled": True, "insertion_order": 1}
    book = {"entries": [{**entry, "extensions": {"scan": True}}], "extensions": {}}
    card = {**CARD, "extensions": {}, "description": text, "character_book": book}
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": card}
    save_card("oren", json.dumps(data), grants=frozenset({"fields"}), by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    model = stage.talks_with("Aye.", "Aye.")
    said = []
    for hour in (7, 8):
        at = datetime(2031, 5, 1, hour, 30, tzinfo=UTC)
        monkeypatch.setattr(heard, "game_time", lambda at=at: at)
        stage.says(stage.anna, "Oren, the ferry?")
        said.append([m.content for m in model.requests[-1].messages if "It is" in m.content])
    assert ["2031 07:30" in str(said[0]), "2031 08:30" in str(said[1])] == [True, True]
    heads = [str(request.messages[:2]) for request in model.requests]
    assert "2031" not in "".join(heads)
    forget_everything()
    assert not_the_same(stage) == []


@pytest.mark.req("S3-10", "S2-30")
def test_turn_is_composed_again_with_its_depth_of_the_card_instructions(stage):
    card = {**CARD, "extensions": {}, "post_history_instructions": "Say little."}
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": card}
    save_card("oren", json.dumps(data), grants=frozenset({"fields"}), by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    depths = []
    for depth in (1, 3):
        model = stage.talks_with(lambda request: "Aye.", post_history_depth=depth)
        for line in ("Oren, one?", "Oren, two?", "Oren, three?"):
            stage.says(stage.anna, line)
        *history, _, _ = [message.content for message in model.requests[-1].messages]
        depths.append(len(history) - 1 - history.index("Say little."))
    forget_everything()
    assert (depths, not_the_same(stage)) == ([1, 3], [])


@pytest.mark.long
@pytest.mark.req("S2-30")
@pytest.mark.parametrize("more", [{}, {"names": "content", "quote_user": True, "squash": True}])
def test_turns_with_sillytavern_assembly_are_composed_again(furnished, more):
    assembly = {"rules": "sillytavern", "lore_format": "[{0}]", **more}
    model = furnished.talks_with("Aye.", assembly=assembly)
    play(furnished)
    edit_everything(furnished)
    forget_everything()
    made = turns_of(furnished)
    assert {turn.manifest.inputs["assembly"]["ties"] for turn in made} == {"role"}
    names = {message.name for request in model.requests for message in request.messages}
    assert names.isdisjoint({"Anna", "Ben"})
    assert not_the_same(furnished) == []


@pytest.mark.long
def test_turns_are_composed_again_when_old_messages_had_left_their_history(furnished):
    furnished.talks_with(lambda request: "A long answer about nothing. " * 12, context_tokens=1400)
    play(furnished, rounds=4)
    assert max(turn.manifest.cut for turn in turns_of(furnished)) > 0
    assert not_the_same(furnished) == []


def test_turns_that_waited_for_each_other_are_composed_again(furnished):
    asked = []

    class Slow:
        name, offline = "slow", False

        def complete(self, request, *, listener=None):
            asked.append(Deferred())
            return asked[-1]

        def close(self):
            """Do nothing, because no connection is open."""

    from evennia_ai.services.llm.chat import ChatReply

    furnished.install(Slow())
    for speaker, line in (
        (furnished.anna, "one"),
        (furnished.ben, "two"),
        (furnished.anna, "three"),
    ):
        furnished.says(speaker, f"Oren, {line} of the ferry?")
    furnished.says(furnished.ben, "Anna, hush.")
    for number in range(3):
        asked[number].callback(ChatReply(text=f"No. {number}.", model="slow"))
        furnished.passes()
    assert len(turns_of(furnished)) == 3
    assert not_the_same(furnished) == []


def compact(stage, *, keep):
    """Replace all but the newest messages of the room's conversation by a summary."""
    room = conversations.conversations_of(stage.npc.ai.ref)[0]
    history = windows(room.id).history
    summary = NewRecord(kind=RecordKind.SUMMARY, role="system", body="They spoke of the ferry.")
    begin_segment(room, summary, summarised=history, first_kept=history.stop - keep)


def test_turns_before_and_after_a_compaction_are_composed_again(furnished):
    model = furnished.talks_with(lambda request: "Aye.")
    play(furnished, rounds=1)
    compact(furnished, keep=3)
    play(furnished, rounds=1)
    compact(furnished, keep=6)
    play(furnished, rounds=1)
    said = [message.content for message in model.requests[-2].messages]
    assert "They spoke of the ferry." in said
    segments = {turn.manifest.inputs["history"]["segment"] for turn in turns_of(furnished)}
    assert {1, 2, 3} <= segments
    assert not_the_same(furnished) == []


def test_turns_of_an_imported_transcript_can_only_be_replayed(furnished):
    furnished.talks_with(lambda request: "Aye.")
    play(furnished, rounds=1)
    room = conversations.conversations_of(furnished.npc.ai.ref)[0]
    import_lines(list(export_lines(room)), npc_ref="9999", by=trusted("Ada"))
    reader = PastReader()
    for turn in turns_in_order("9999"):
        records = record_rows.records(turn.manifest.sent_ids)
        assert replay_turn(turn.manifest, records).is_same
        with pytest.raises(NotReadBackError):
            compose_again(turn, reader)


def test_turns_are_composed_again_in_reverse_order(furnished):
    furnished.talks_with(lambda request: "Aye.")
    play(furnished)
    reader = PastReader()
    for turn in reversed(turns_of(furnished)):
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256


def test_composing_again_does_not_change_a_later_preview(furnished):
    furnished.talks_with(lambda request: "Aye.")
    play(furnished, rounds=1)
    before = furnished.npc.ai.preview("Oren?", furnished.anna).sha256
    not_the_same(furnished)
    assert furnished.npc.ai.preview("Oren?", furnished.anna).sha256 == before


def test_missing_revision_raises_an_error_that_names_it(furnished):
    from evennia_ai import models

    furnished.talks_with("Aye.")
    furnished.says(furnished.anna, "Oren?")
    forget_everything()
    models.Revision.objects.filter(key="spare").delete()
    with pytest.raises(NotReadBackError, match="revision of component 'spare' with number 1"):
        compose_again(turns.last_turn(furnished.npc.ai.ref), PastReader())


def test_turn_cannot_be_composed_again_when_its_manifest_lacks_a_value(furnished):
    """A manifest in an imported transcript may have been written by anybody."""
    furnished.talks_with("Aye.")
    furnished.says(furnished.anna, "Oren?")
    turn = turns.last_turn(furnished.npc.ai.ref)
    inputs = turn.manifest.inputs
    made_of = inputs["made_of"]
    lacking = [{key: one for key, one in inputs.items() if key != gone} for gone in inputs]
    lacking += [
        {**inputs, "made_of": {key: one for key, one in made_of.items() if key != gone}}
        for gone in made_of
    ]
    used_elsewhere = {"reply_tokens", "providers"}
    refused = set()
    for less in lacking:
        gone = inputs.keys() - less.keys() or made_of.keys() - less["made_of"].keys()
        past = replace(turn, manifest=replace(turn.manifest, inputs=less))
        try:
            compose_again(past, PastReader())
        except NotReadBackError as error:
            assert "can be replayed, but not composed again" in str(error)
            refused |= gone
    assert refused == (inputs.keys() | made_of.keys()) - used_elsewhere


def test_outcome_is_unchanged_for_an_edit_without_changes(furnished):
    furnished.talks_with(lambda request: "Aye.")
    play(furnished, rounds=1)
    reader = PastReader()
    outcomes = {
        compare_turn(turn, lambda past: past.inputs, reader, see_all).outcome
        for turn in turns_of(furnished)
    }
    assert outcomes == {"unchanged"}


def test_history_of_a_past_turn_has_no_later_record(furnished):
    furnished.talks_with(lambda request: "Aye.")
    play(furnished, rounds=1)
    reader = PastReader()
    for turn in turns_of(furnished):
        past = reader.inputs(turn).inputs
        newest = int(turn.event_record)
        ids = [int(message.record) for message in past.history]
        assert all(number < newest for number in ids)
        assert past.event.record == turn.event_record


@pytest.mark.long
def test_every_prefix_break_has_a_declared_reason(furnished):
    furnished.talks_with(lambda request: "A long answer about nothing. " * 12, context_tokens=1400)
    play(furnished, rounds=2)
    # Remove the dice from the description: they break the prefix in each turn, which would hide
    # later breaks.
    data = {**CARD, "description": "{{char}} rows {{user}} over."}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    save_card("oren", json.dumps(card), by=trusted("builder"))
    play(furnished, rounds=2)
    manifests = [turn.manifest for turn in turns_of(furnished)]
    reasons = {
        manifest.break_reason for manifest in manifests if manifest.shared_tokens is not None
    }
    assert "undeclared" not in reasons
    assert None not in reasons
    assert "dice" in reasons
    assert reasons & {"step_trim", "compaction"}
