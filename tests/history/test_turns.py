"""Manifests: a past prompt is rebuilt byte for byte, whatever was edited since."""

import json
from dataclasses import replace

import pytest

from evennia_ai.history.errors import ReplayError
from evennia_ai.history.turns import (
    RecordedMessage,
    RenderedMessage,
    TurnManifest,
    manifest_of,
    messages_of,
    report_of_turn,
)
from evennia_ai.lorebook.silence import Silence
from evennia_ai.prompt.prompt import digest
from evennia_ai.prompt.report import report_of
from evennia_ai.prompt.trace import Verdict
from tests.history.builders import a_conversation, a_prompt


@pytest.mark.req("S2-30")
def test_a_past_prompt_is_rebuilt_byte_for_byte():
    records = a_conversation(7)
    prompt = a_prompt(records)
    manifest = TurnManifest.from_json(manifest_of(prompt).to_json())

    rebuilt = messages_of(manifest, records)

    assert [m.wire() for m in rebuilt] == [m.wire() for m in prompt.messages]
    assert digest(rebuilt) == prompt.sha256


@pytest.mark.req("S2-30")
def test_an_edited_component_does_not_change_a_past_prompt():
    records = a_conversation(7)
    manifest = manifest_of(a_prompt(records, mood="Oren is tired."))
    a_prompt(records, mood="Oren is merry.", mood_revision=4)

    assert "Oren is tired." in [m.content for m in messages_of(manifest, records)]


def test_a_manifest_goes_to_json_and_back_unchanged():
    manifest = manifest_of(a_prompt(a_conversation(7)), model="tiny", revisions={"card:oren": "2"})

    assert TurnManifest.from_json(manifest.to_json()) == manifest


def test_equal_prompts_have_equal_manifests():
    records = a_conversation(7)

    assert manifest_of(a_prompt(records)).to_json() == manifest_of(a_prompt(records)).to_json()


@pytest.mark.req("S2-16")
def test_the_manifest_has_the_hash_of_the_bytes_that_are_sent():
    prompt = a_prompt(a_conversation(3))

    assert manifest_of(prompt).sha256 == digest(prompt.messages)


def test_what_the_records_hold_is_named_and_not_copied():
    records = a_conversation(5)
    manifest = manifest_of(a_prompt(records))

    assert manifest.record_ids == tuple(record.id for record in records)
    assert "Line 0." not in manifest.to_json()


def test_what_only_the_prompt_has_is_kept_with_its_exact_text():
    manifest = manifest_of(a_prompt(a_conversation(5)))
    texts = [m.content for m in manifest.messages if isinstance(m, RenderedMessage)]

    assert texts == ["Stay in character.", "Oren is tired.", "The quay, at dusk."]


def test_a_manifest_says_which_revisions_took_part():
    manifest = manifest_of(a_prompt(a_conversation(3)), revisions={"card:oren": "2"})

    assert manifest.revisions == {
        "component:system_prompt": "1",
        "component:mood": "3",
        "card:oren": "2",
    }


def test_the_event_stands_in_its_own_block():
    records = a_conversation(3)
    rebuilt = messages_of(manifest_of(a_prompt(records)), records)

    assert [m.content for m in rebuilt if m.block == "event"] == [records[-1].body]


def test_the_cut_of_the_history_is_remembered():
    records = a_conversation(41)
    prompt = a_prompt(records, limit_tokens=220)

    assert manifest_of(prompt).cut == prompt.cut > 0


def test_a_missing_record_is_told():
    records = a_conversation(5)
    manifest = manifest_of(a_prompt(records))

    with pytest.raises(ReplayError, match="record 101 of the turn is not there"):
        messages_of(manifest, records[1:])


def test_a_record_that_was_tampered_with_is_told():
    records = a_conversation(5)
    manifest = manifest_of(a_prompt(records))
    records[0] = replace(records[0], body="Something else.")

    with pytest.raises(ReplayError, match="was changed in the database"):
        messages_of(manifest, records)


def test_a_manifest_of_another_format_is_refused():
    told = json.loads(manifest_of(a_prompt(a_conversation(3))).to_json())
    told["format"] = 99

    with pytest.raises(ReplayError, match="format 99, this version reads 1 and 2"):
        TurnManifest.from_json(json.dumps(told))


def test_a_manifest_of_the_first_format_is_read():
    manifest = manifest_of(a_prompt(a_conversation(3)))
    told = json.loads(manifest.to_json())
    del told["silent"]
    told["format"] = 1

    assert TurnManifest.from_json(json.dumps(told)) == manifest


def test_silent_entries_are_kept_in_bulk_and_told_one_by_one():
    records = a_conversation(3)
    silent = [
        Silence("harbour", "none of its keys is there", '0-2;["gate"]'),
        Silence("quay", "it is disabled", "7"),
    ]
    manifest = manifest_of(a_prompt(records), silent=silent)
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
    records = a_conversation(3)
    own = Verdict(stage="activate", item="lore:harbour#1", kept=True, reason="its key is there")
    manifest = manifest_of(
        a_prompt(records), silent=[Silence("harbour", "none of its keys is there", "0-2")]
    )
    manifest = replace(manifest, verdicts=(own, *manifest.verdicts))
    told = [v for v in report_of_turn(manifest, records).verdicts if v.stage == "activate"]

    assert [v.item for v in told] == ["lore:harbour#1", "lore:harbour#0", "lore:harbour#2"]
    assert told[0] == own


def test_the_report_of_a_past_turn_is_the_report_it_had():
    records = a_conversation(7)
    older = a_prompt(records[:-2])
    prompt = a_prompt(records)
    manifest = manifest_of(prompt, account=prompt.account(older.messages))
    again = TurnManifest.from_json(manifest.to_json())

    assert report_of_turn(again, records) == report_of(prompt, older=older.messages)


def test_a_recorded_message_says_where_it_stood_and_what_it_cost():
    records = a_conversation(3)
    prompt = a_prompt(records)
    recorded = [m for m in manifest_of(prompt).messages if isinstance(m, RecordedMessage)]

    assert [m.block for m in recorded] == ["history", "history", "event"]
    assert all(m.tokens > 0 for m in recorded)
