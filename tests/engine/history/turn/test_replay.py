"""A past prompt from its records alone, and what is told where it cannot be had."""

from dataclasses import replace

import pytest

from evennia_ai.engine.history.records import ERASED
from evennia_ai.engine.history.turn.manifest import RecordedMessage
from evennia_ai.engine.history.turn.replay import Fault, replay, shared_prefix
from evennia_ai.engine.prompt.messages import messages_sha256
from tests.engine.history.builders import a_conversation, a_prompt, manifest_of, sent


@pytest.mark.req("S2-16")
def test_a_prompt_is_rebuilt_from_its_records():
    said = a_conversation(3)
    prompt = a_prompt(said)
    manifest, _, records = sent(prompt, said)
    rebuilt = replay(manifest, records)
    assert rebuilt.is_same
    assert messages_sha256(rebuilt.messages) == manifest.sha256 == prompt.sha256


def test_a_record_that_is_not_there_is_named_with_its_message():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    missing = manifest.record_ids[0]
    rebuilt = replay(manifest, [record for record in records if record.id != missing])
    assert not rebuilt.is_same
    assert rebuilt.faults == (Fault(0, missing, "is not there"),)
    assert rebuilt.messages == ()


@pytest.mark.req("S2-16")
def test_a_record_that_was_tampered_with_is_named():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    changed = [
        replace(r, body="Other words.", memo={}) if r.id == said[1].id else r for r in records
    ]
    (fault,) = replay(manifest, changed).faults
    assert fault.record == said[1].id
    assert "does not say what its hash covers" in fault.problem


def test_a_record_that_was_erased_is_told_apart_from_one_that_was_tampered_with():
    said = a_conversation(3)
    manifest, _, records = sent(a_prompt(said), said)
    erased = [
        replace(r, name="", body="", meta=ERASED) if r.id == said[1].id else r for r in records
    ]
    (fault,) = replay(manifest, erased).faults
    assert fault.problem == "was erased on request"


def a_manifest(*records):
    said = a_conversation(3)
    messages = tuple(RecordedMessage(r, "history", injected=False, tokens=5) for r in records)
    return replace(manifest_of(a_prompt(said), said), messages=messages)


def test_two_prompts_share_the_records_they_begin_with():
    older, newer = a_manifest("1", "2", "9"), a_manifest("1", "2", "3", "4")
    assert shared_prefix(older, newer) == (2, 10, False)


def test_a_prompt_that_the_next_one_only_goes_on_from_is_whole_in_it():
    assert shared_prefix(a_manifest("1", "2"), a_manifest("1", "2", "3")).is_whole
