"""Replay: a past prompt is rebuilt from its records, or an error names the damaged record."""

from dataclasses import replace

import pytest

from evennia_ai.engine.history.records import ERASED
from evennia_ai.engine.history.turn.manifest import RecordedMessage
from evennia_ai.engine.history.turn.replay import LostMessage, replay_turn, shared_prefix
from evennia_ai.engine.prompt.messages import messages_sha256
from tests.engine.history.builders import a_conversation, a_prompt, manifest_of, recorded, sent


@pytest.mark.req("S2-16")
def test_past_prompt_is_rebuilt_from_its_records():
    said = a_conversation(3)
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said)
    rebuilt = replay_turn(manifest, records)
    assert rebuilt.is_same
    assert messages_sha256(rebuilt.messages) == manifest.sha256 == prompt.sha256


def test_replay_names_a_missing_record_and_its_message():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    missing = manifest.record_ids[0]
    rebuilt = replay_turn(manifest, [record for record in records if record.id != missing])
    assert not rebuilt.is_same
    assert rebuilt.faults == (LostMessage(0, missing, "is not there"),)
    assert rebuilt.messages == ()


@pytest.mark.req("S2-16")
def test_replay_names_a_changed_record():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    changed = [
        replace(r, body="Other words.", memo={}) if r.id == said[1].id else r for r in records
    ]
    (fault,) = replay_turn(manifest, changed).faults
    assert fault.record == said[1].id
    assert "its hash does not match its content" in fault.problem


def test_replay_distinguishes_erased_from_changed_records():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    erased = [
        replace(r, name="", body="", meta=ERASED) if r.id == said[1].id else r for r in records
    ]
    (fault,) = replay_turn(manifest, erased).faults
    assert fault.problem == "was erased on request"


def a_manifest(*records):
    said = a_conversation(3)
    messages = recorded(RecordedMessage(r, "history", injected=False, tokens=5) for r in records)
    return replace(manifest_of(a_prompt(said), said), messages=messages)


def test_prompts_share_the_messages_of_equal_records_at_their_beginning():
    older, newer = a_manifest("1", "2", "9"), a_manifest("1", "2", "3", "4")
    assert shared_prefix(older, newer) == (2, 10, False)


def test_shared_prefix_is_the_whole_prompt_when_the_next_prompt_only_appends():
    assert shared_prefix(a_manifest("1", "2"), a_manifest("1", "2", "3")).is_whole
