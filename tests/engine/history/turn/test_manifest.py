"""Manifests: a past prompt is rebuilt byte for byte, whatever was edited since."""

import json
from dataclasses import replace

import pytest

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import ERASED
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.history.turn.replay import messages_of, report_of_turn
from evennia_ai.engine.lorebook.book import Unmatched
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.engine.prompt.report import make_report
from evennia_ai.engine.prompt.trace import Verdict
from tests.engine.history.builders import a_conversation, a_prompt, manifest_of, sent


@pytest.mark.req("S2-30")
def test_a_past_prompt_is_rebuilt_byte_for_byte():
    said = a_conversation(7)
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said)
    manifest = TurnManifest.from_json(manifest.to_json())

    rebuilt = messages_of(manifest, records)

    assert [m.wire() for m in rebuilt] == [m.wire() for m in prompt.messages]
    assert messages_sha256(rebuilt) == prompt.sha256


@pytest.mark.req("S2-30")
def test_an_edited_component_does_not_change_a_past_prompt():
    said = a_conversation(7)
    manifest, _, records = sent(a_prompt(said, mood="Oren is tired."), said)
    sent(a_prompt(said, mood="Oren is merry.", mood_revision=4), said)

    assert "Oren is tired." in [m.content for m in messages_of(manifest, records)]


@pytest.mark.req("S2-30")
def test_a_manifest_goes_to_json_and_back_unchanged():
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
def test_the_manifest_has_the_hash_of_the_bytes_that_are_sent():
    said = a_conversation(3)
    prompt = a_prompt(said)

    assert manifest_of(prompt, said).sha256 == messages_sha256(prompt.messages)


@pytest.mark.req("S2-16")
def test_a_manifest_names_records_and_holds_no_text():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    told = manifest.to_json()

    assert len(manifest.record_ids) == len(manifest.messages)
    assert set(manifest.record_ids) == {record.id for record in records}
    assert not any(text in told for text in ("Line 0.", "Stay in character.", "The quay"))


@pytest.mark.req("S2-30")
def test_a_manifest_says_which_revisions_took_part():
    said = a_conversation(3)
    manifest = manifest_of(a_prompt(said), said, revisions={"card:oren": "2"})

    assert manifest.revisions == {
        "component:system_prompt": "1",
        "component:mood": "3",
        "card:oren": "2",
    }


def test_the_event_stands_in_its_own_block():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)

    rebuilt = messages_of(manifest, records)
    assert [m.content for m in rebuilt if m.block == "event"] == [said[-1].body]


def test_what_was_injected_is_injected_in_the_rebuilt_prompt():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)

    rebuilt = messages_of(manifest, records)
    assert [m.content for m in rebuilt if m.injected] == ["Oren is tired."]


def test_the_cut_of_the_history_is_remembered():
    said = a_conversation(41)
    prompt = a_prompt(said, limit_tokens=220)

    assert manifest_of(prompt, said).cut == prompt.cut > 0


def test_a_missing_record_is_told():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)

    with pytest.raises(ReplayError, match="record 101 of the turn is not there"):
        messages_of(manifest, records[1:])


@pytest.mark.req("S2-16")
@pytest.mark.parametrize("touched", [0, -1])
def test_a_record_that_was_tampered_with_is_told(touched):
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    records[touched] = replace(records[touched], body="Something else.", memo={})

    with pytest.raises(ReplayError, match="was changed in the database"):
        messages_of(manifest, records)


def test_a_turn_whose_records_were_erased_says_so():
    said = a_conversation(5)
    manifest, _, records = sent(a_prompt(said), said)
    gone = [replace(r, name="", body="", meta=ERASED, memo={}) for r in records]

    with pytest.raises(ReplayError, match="was erased on request"):
        messages_of(manifest, gone)


def test_a_turn_that_was_erased_says_so():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)

    with pytest.raises(ReplayError, match="erased on request"):
        messages_of(replace(manifest, erased=True), records)


def test_a_manifest_of_another_format_is_refused():
    said = a_conversation(3)
    told = json.loads(manifest_of(a_prompt(said), said).to_json())
    told["format"] = 99

    with pytest.raises(ReplayError, match="format 99, this version reads 4"):
        TurnManifest.from_json(json.dumps(told))


def test_silent_entries_are_kept_in_bulk_and_told_one_by_one():
    said = a_conversation(3)
    silent = [
        Unmatched("harbour", "none of its keys is there", '0-2;["gate"]'),
        Unmatched("quay", "it is disabled", "7"),
    ]
    manifest, _, records = sent(a_prompt(said), said, silent=silent)
    again = TurnManifest.from_json(manifest.to_json())
    told = report_of_turn(again, records).verdicts

    assert again == manifest
    assert [(v.item, v.reason) for v in told if v.stage == "activate"] == [
        ("lore:harbour#0", "none of its keys is there"),
        ("lore:harbour#1", "none of its keys is there"),
        ("lore:harbour#2", "none of its keys is there"),
        ("lore:harbour#gate", "none of its keys is there"),
        ("lore:quay#7", "it is disabled"),
    ]
    assert not any(v.kept for v in told if v.stage == "activate")


def test_an_entry_with_a_verdict_of_its_own_is_not_told_as_silent():
    said = a_conversation(3)
    own = Verdict(stage="activate", item="lore:harbour#1", kept=True, reason="its key is there")
    manifest, _, records = sent(
        a_prompt(said), said, silent=[Unmatched("harbour", "none of its keys is there", "0-2")]
    )
    manifest = replace(manifest, verdicts=(own, *manifest.verdicts))
    told = [v for v in report_of_turn(manifest, records).verdicts if v.stage == "activate"]

    assert [v.item for v in told] == ["lore:harbour#1", "lore:harbour#0", "lore:harbour#2"]
    assert told[0] == own


def test_the_report_of_a_past_turn_is_the_report_it_had():
    said = a_conversation(7)
    older = a_prompt(said[:-2])
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said, account=prompt.account(older.sent))
    again = TurnManifest.from_json(manifest.to_json())

    told = report_of_turn(again, records)
    # Which record is behind a text made for this prompt is known when it is committed.
    made = replace(told, messages=tuple(replace(one, record=None) for one in told.messages))
    asked = make_report(prompt, older=older.sent)
    assert made == replace(
        asked, messages=tuple(replace(one, record=None) for one in asked.messages)
    )
    assert all(one.record for one in told.messages if one.block in ("ordered", "history"))
    assert again.break_reason == "moving"


def test_a_message_says_where_it_stood_and_what_it_cost():
    said = a_conversation(3)
    messages = manifest_of(a_prompt(said), said).messages

    blocks = [m.block for m in messages]
    assert blocks == ["ordered", "history", "history", "history", "dynamic", "event"]
    assert all(m.tokens > 0 for m in messages)
