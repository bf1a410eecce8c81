"""The recorder commits the events of many NPCs in small batches, in order for each NPC."""

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.recording.event_recorder import AT_ONCE
from evennia_ai.npc.runtime import runtime
from evennia_ai.store.history import conversations, record_rows


def a_crowd(stage, count: int):
    return [stage.make(f"N{number}", "evennia_ai.typeclasses.AINPC") for number in range(count)]


def heard_by(npc) -> list[str]:
    found = conversations.conversations_of(npc.ai.ref)
    return [one.body for known in found for one in record_rows.records_of(known)]


def test_line_heard_by_many_npcs_is_committed_in_batches(stage, monkeypatch):
    crowd = a_crowd(stage, 2 * AT_ONCE)
    slices = []
    append_each = conversations.append_each

    def counted(new):
        slices.append(len(new))
        return append_each(new)

    monkeypatch.setattr(conversations, "append_each", counted)
    stage.anna.at_say("Fog again.")
    assert slices == []
    stage.passes()

    assert slices == [AT_ONCE, AT_ONCE, 1]
    assert all(heard_by(npc) == ["Fog again."] for npc in (stage.npc, *crowd))


def test_events_of_one_npc_are_committed_in_order(stage):
    stage.talks_with()
    for number in range(6):
        stage.anna.at_say(f"Ben, {number}")
    stage.passes()

    assert heard_by(stage.npc) == [f"Ben, {number}" for number in range(6)]


def test_events_are_committed_one_by_one_when_the_batch_fails(stage, logged, monkeypatch):
    crowd = a_crowd(stage, 3)
    refused = conversations.append_records

    def refuse_one(where, new):
        if where.npc_ref == crowd[0].ai.ref:
            raise StoreError("somebody else writes")
        return refused(where, new)

    def refuse(_):
        raise StoreError("somebody else writes")

    with monkeypatch.context() as patch:
        patch.setattr(conversations, "append_records", refuse_one)
        patch.setattr(conversations, "append_each", refuse)
        stage.anna.at_say("Fog again.")
        stage.passes()
        assert [heard_by(npc) for npc in crowd] == [[], ["Fog again."], ["Fog again."]]
    stage.passes(5)
    assert heard_by(crowd[0]) == ["Fog again."]


def test_flush_commits_all_waiting_events(stage):
    a_crowd(stage, 9)
    stage.anna.at_say("Fog again.")
    runtime().recorder.flush()

    assert heard_by(stage.npc) == ["Fog again."]


def test_then_calls_the_function_after_earlier_events_are_committed(stage):
    done = []
    stage.anna.at_say("Fog again.")
    runtime().recorder.then(lambda: done.append(heard_by(stage.npc)))
    stage.passes()

    assert done == [["Fog again."]]
