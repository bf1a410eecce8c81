"""Manifests: a past prompt can be rebuilt byte for byte after any later edit."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import ERASED
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.history.turn.replay import replay_messages, turn_report
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.engine.prompt.report import make_report
from evennia_ai.engine.prompt.trace import Verdict
from tests.engine.history.builders import a_conversation, a_prompt, manifest_of, sent


@pytest.mark.req("S2-30")
def test_past_prompt_is_rebuilt_byte_for_byte():
    said = a_conversation(7)
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said)
    manifest = TurnManifest.from_json(manifest.to_json())

    rebuilt = replay_messages(manifest, records)

    assert [m.wire() for m in rebuilt] == [m.wire() for m in prompt.messages]
    assert messages_sha256(rebuilt) == prompt.sha256


@pytest.mark.req("S2-30")
def test_past_prompt_is_rebuilt_unchanged_after_an_edit():
    said = a_conversation(7)
    manifest, _, records = sent(a_prompt(said, mood="Oren is tired."), said)
    sent(a_prompt(said, mood="Oren is merry.", mood_revision=4), said)

    assert "Oren is tired." in [m.content for m in replay_messages(manifest, records)]


@pytest.mark.req("S2-30")
def test_manifest_round_trips_through_json():
    said = a_conversation(7)
    manifest = manifest_of(
        a_prompt(said), said, model="tiny", revisions={"card:oren": "2"}, inputs={"cut": 3}
    )

    assert TurnManifest.from_json(manifest.to_json()) == manifest


def test_equal_prompts_have_equal_manifests():
    said = a_conversation(7)

    one, other = (manifest_of(a_prompt(said), said) for _ in range(2))
    assert one.to_json() == other.to_json()


@pytest.mark.req("S2-16")
def test_manifest_has_the_hash_of_the_sent_bytes():
    said = a_conversation(3)
    prompt = a_prompt(said)

    assert manifest_of(prompt, said).sha256 == messages_sha256(prompt.messages)


@pytest.mark.req("S2-16")
def test_manifest_names_records_and_has_no_text():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    told = manifest.to_json()

    assert len(manifest.record_ids) == len(manifest.messages)
    assert set(manifest.record_ids) == {record.id for record in records}
    assert not any(text in told for text in ("Line 0.", "Stay in character.", "The quay"))


@pytest.mark.req("S2-30")
def test_manifest_has_the_revisions_of_the_texts_in_the_prompt():
    said = a_conversation(3)
    manifest = manifest_of(a_prompt(said), said, revisions={"card:oren": "2"})

    assert manifest.revisions == {
        "component:system_prompt": "1",
        "component:mood": "3",
        "card:oren": "2",
    }


def test_manifest_lists_the_event_in_the_block_event():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)

    rebuilt = replay_messages(manifest, records)
    assert [m.content for m in rebuilt if m.block == "event"] == [said[-1].body]


def test_rebuilt_prompt_marks_messages_injected_by_depth():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)

    rebuilt = replay_messages(manifest, records)
    assert [m.content for m in rebuilt if m.injected] == ["Oren is tired."]


def test_manifest_has_the_index_of_the_oldest_history_message_in_the_prompt():
    said = a_conversation(41)
    prompt = a_prompt(said, limit_tokens=220)

    assert manifest_of(prompt, said).cut == prompt.cut > 0


def test_replay_names_a_missing_record():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)

    with pytest.raises(ReplayError, match="record 101 of the turn is not there"):
        replay_messages(manifest, records[1:])


@pytest.mark.req("S2-16")
@pytest.mark.parametrize("touched", [0, -1])
def test_replay_fails_when_a_record_was_changed(touched):
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    records[touched] = replace(records[touched], body="Something else.", memo={})

    with pytest.raises(ReplayError, match="was changed in the database"):
        replay_messages(manifest, records)


def test_replay_says_that_records_were_erased():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    gone = [replace(r, name="", body="", meta=ERASED, memo={}) for r in records]

    with pytest.raises(ReplayError, match="was erased on request"):
        replay_messages(manifest, gone)


def test_replay_says_that_the_words_of_the_turn_were_erased():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)

    with pytest.raises(ReplayError, match="erased on request"):
        replay_messages(replace(manifest, erased=True), records)


def test_manifest_of_another_format_is_refused():
    said = a_conversation(3)
    told = json.loads(manifest_of(a_prompt(said), said).to_json())
    told["format"] = 99

    with pytest.raises(ReplayError, match="format 99, this version reads 5"):
        TurnManifest.from_json(json.dumps(told))


def test_lore_entries_in_groups_of_a_manifest_are_reported_one_by_one():
    said = a_conversation(3)
    silent = [
        Unmatched("harbour", "none of its keys is there", '0-2;["gate"]'),
        Unmatched("quay", "it is disabled", "7"),
    ]
    manifest, _, records = sent(a_prompt(said), said, silent=silent)
    again = TurnManifest.from_json(manifest.to_json())
    told = turn_report(again, records).verdicts

    assert again == manifest
    assert [(v.item, v.reason) for v in told if v.stage == "activate"] == [
        ("lore:harbour#0", "none of its keys is there"),
        ("lore:harbour#1", "none of its keys is there"),
        ("lore:harbour#2", "none of its keys is there"),
        ("lore:harbour#gate", "none of its keys is there"),
        ("lore:quay#7", "it is disabled"),
    ]
    assert not any(v.kept for v in told if v.stage == "activate")


def test_lore_entry_with_an_individual_verdict_is_not_stored_in_a_group():
    said = a_conversation(3)
    own = Verdict(stage="activate", item="lore:harbour#1", kept=True, reason="its key is there")
    manifest, _, records = sent(
        a_prompt(said), said, silent=[Unmatched("harbour", "none of its keys is there", "0-2")]
    )
    manifest = replace(manifest, verdicts=(own, *manifest.verdicts))
    told = [v for v in turn_report(manifest, records).verdicts if v.stage == "activate"]

    assert [v.item for v in told] == ["lore:harbour#1", "lore:harbour#0", "lore:harbour#2"]
    assert told[0] == own


def test_report_of_a_past_turn_is_unchanged():
    said = a_conversation(7)
    older = a_prompt(said[:-2])
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said, account=prompt.account(older.sent))
    again = TurnManifest.from_json(manifest.to_json())

    told = turn_report(again, records)
    # A text that was made for this prompt gets its record only when the prompt is committed.
    made = replace(told, messages=tuple(replace(one, record=None) for one in told.messages))
    asked = make_report(prompt, older=older.sent)
    assert made == replace(
        asked, messages=tuple(replace(one, record=None) for one in asked.messages)
    )
    assert all(one.record for one in told.messages if one.block in ("ordered", "history"))
    assert again.break_reason == "moving"


def test_report_of_a_past_turn_has_the_tokens_of_each_message():
    said = a_conversation(3)
    messages = manifest_of(a_prompt(said), said).messages

    blocks = [m.block for m in messages]
    assert blocks == ["ordered", "history", "history", "history", "dynamic", "event"]
    assert all(m.tokens > 0 for m in messages)
