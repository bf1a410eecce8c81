"""Everything in a prompt is a record: events, reminders, facts. Nothing comes from sessions."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.sending import text_key
from evennia_ai.engine.prompt.cache_account import cache_breakpoints
from evennia_ai.store.authored import components
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.windows import windows
from tests.npc.upkeep.compacting_games import FULL, GOOD, SMALL, Talker, rules, segment_of, talks
from tests.properties import up_to

POISON = "Mandragora"
NAMES = [
    *("history", "events", "note", "reminder", "mood", "facts", "memory", "blocks", "prompt"),
    *("ai_enabled", "ai_partner", "desc", "key", "name", "location", "card", "lore", "screen"),
]


def told(stage: Any, number: int) -> list[str]:
    """Return the texts of the messages in the model's request of this number."""
    return [message.content for message in stage.model.requests[number].messages]


def recorded(stage: Any) -> list[str]:
    """Return the texts in the room's history after a restart."""
    forget_everything()
    (room,) = conversations_of(stage.npc.ai.ref)
    return [message.content for message in windows(room.id).history]


def appended(stage: Any, kind: RecordKind, body: str) -> None:
    (room,) = conversations_of(stage.npc.ai.ref)
    conversations.append_records(room, [NewRecord(kind=kind, role="system", body=body)])


@pytest.mark.req("S2-10")
def test_overheard_lines_are_recorded_and_in_every_later_prompt(stage):
    stage.talks_with("Aye.", "Aye.", "Aye.")
    stage.says(stage.ben, "The bell is cracked.")
    stage.anna.at_say("waves from the pier.", msg_self=True)
    stage.passes()
    stage.says(stage.anna, "Oren, who spoke?")
    stage.says(stage.anna, "Oren, and now?")

    for heard in ("The bell is cracked.", "waves from the pier."):
        for number in (0, 1):
            assert [text for text in told(stage, number) if text.endswith(heard)]
        assert heard in recorded(stage)


@pytest.mark.req("S2-10")
@pytest.mark.parametrize("body", ["The ferry came in.", "The hour bell rang."])
def test_event_record_is_in_every_later_prompt(stage, body):
    stage.talks_with("Aye.", "Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    appended(stage, RecordKind.EVENT, body)
    stage.says(stage.anna, "Oren, what was that?")
    stage.says(stage.anna, "Oren, what then?")

    assert body not in told(stage, 0)
    assert told(stage, 1).count(body) == told(stage, 2).count(body) == 1
    assert body in recorded(stage)


@pytest.mark.req("S2-11")
def test_reminder_record_is_the_same_after_a_restart(stage):
    body = "Remember: you promised Anna a seat."
    stage.talks_with("Aye.", "Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    appended(stage, RecordKind.REMINDER, body)
    stage.says(stage.anna, "Oren, what was that?")
    before = recorded(stage)
    stage.says(stage.anna, "Oren, what then?")

    assert before.count(body) == told(stage, 1).count(body) == told(stage, 2).count(body) == 1
    assert recorded(stage)[: len(before)] == before


@pytest.mark.req("S2-11")
def test_facts_of_the_moment_are_recorded_with_their_turn(stage):
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    manifest = turns.last_turn(stage.npc.ai.ref).manifest
    (facts,) = [m for m in manifest.messages if m.block == "dynamic"]
    (record,) = record_rows.records([facts.record])

    assert record.kind == RecordKind.CONTEXT_BLOCK
    assert record.body in told(stage, 0)


@pytest.mark.req("S2-13")
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, unique=True),
    value=st.sampled_from([POISON, [POISON], {"text": POISON}, (POISON, 3)]),
)
@settings(
    max_examples=up_to(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_session_flags_and_nattributes_do_not_change_a_prompt(stage, names, value):
    clean = stage.npc.ai.preview("Who is here?", stage.anna).sha256
    holders = (stage.npc, stage.anna, stage.room)
    for holder in holders:
        for name in names:
            holder.nattributes.add(name, value)
    for session in stage.anna.sessions.all():
        session.protocol_flags = dict.fromkeys(names, value)
    poisoned = stage.npc.ai.preview("Who is here?", stage.anna)
    for holder in holders:
        for name in names:
            holder.nattributes.remove(name)

    assert poisoned.sha256 == clean
    assert not any(POISON in message.content for message in poisoned.messages)


SYSTEM = "You are Oren, and you row the ferry."


@pytest.fixture
def rower(stage):
    """A stage where the NPC has a system prompt."""
    components.update("system_prompt", content=SYSTEM, by=trusted("Mara"))
    return stage


def head_records(stage: Any) -> dict[str, Any]:
    """Return the records of the newest prompt before the history, by their text."""
    manifest = turns.last_turn(stage.npc.ai.ref).manifest
    ids = [m.record for m in manifest.messages if m.block == "ordered"]
    return {record.body: record for record in record_rows.records(ids)}


@pytest.mark.req("S2-07")
def test_compaction_keeps_the_bytes_of_the_system_prompt(rower):
    rower.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
    talks(rower, FULL - 10)
    before = head_records(rower)
    assert (segment_of(rower), SYSTEM in before) == (1, True)
    talks(rower, 10, start=FULL - 10)
    after = head_records(rower)

    assert segment_of(rower) == 2
    assert [text_key(record) for record in after.values()] == [
        text_key(record) for record in before.values()
    ]
    assert {record.segment for record in after.values()} == {2}


@pytest.mark.req("S2-07")
def test_system_prompt_changes_only_with_a_committed_revision(rower):
    rower.talks_with(Talker(GOOD), compaction=rules(), **SMALL)
    talks(rower, 2)
    forget_everything()
    talks(rower, 1)
    assert SYSTEM in head_records(rower)

    components.update("system_prompt", content="Be somebody else.", by=trusted("Mara"))
    talks(rower, 1)
    manifest = turns.last_turn(rower.npc.ai.ref).manifest
    assert "Be somebody else." in head_records(rower)
    assert (manifest.broken_by, manifest.break_reason) == ("component:system_prompt", "revision")


@pytest.mark.req("S2-06")
def test_cache_breakpoints_depend_only_on_the_prompt(rower):
    rower.talks_with("Aye.", "Aye.")
    rower.says(rower.anna, "Oren?")
    first = rower.npc.ai.preview("And?", rower.anna)
    rower.passes(3600)
    forget_everything()
    later = rower.npc.ai.preview("And?", rower.anna)

    assert first.breakpoints == later.breakpoints == cache_breakpoints(later.messages)
    assert 1 <= len(first.breakpoints) <= 4
