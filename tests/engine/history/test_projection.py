"""Projection: which records become messages of a prompt, and in which order."""

import gc

import pytest

from evennia_ai.engine.history.projection import (
    message_of,
    project_records,
    record_of,
    release_messages,
)
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.sending import Handle, sent_messages
from evennia_ai.engine.prompt.messages import Message, ToolCall
from evennia_ai.services.llm.roles import RoleProfile, adapt_messages, chat_messages
from tests.engine.history.builders import a_conversation, a_new_record, stored

SAID = ["user", "assistant", "tool_call", "tool_result", "event", "reminder", "summary"]
UNCOUNTED = ["context_block", "note_anchor", "component_rev"]
SILENT = ["spoken", "fallback", "invoke", "run_end", "usage", "snapshot", "erasure", "control"]


def message_of_kind(kind):
    (record,) = stored([a_new_record("text", kind=RecordKind(kind))])
    return message_of(record)


def test_every_record_kind_is_tested_for_projection():
    assert sorted(SAID + UNCOUNTED + SILENT) == sorted(kind.value for kind in RecordKind)


@pytest.mark.req("S2-17")
@pytest.mark.parametrize("kind", SAID)
def test_record_of_something_said_is_a_message_that_depths_count(kind):
    message = message_of_kind(kind)

    assert message is not None
    assert message.counted


@pytest.mark.parametrize("kind", UNCOUNTED)
def test_bookkeeping_record_is_a_message_that_depths_do_not_count(kind):
    assert not message_of_kind(kind).counted


@pytest.mark.parametrize("kind", SILENT)
def test_record_of_a_turns_end_becomes_no_message(kind):
    assert message_of_kind(kind) is None


def test_projected_message_names_its_record():
    (record,) = stored([a_new_record("Good evening.", name="Anna")])
    message = message_of(record)

    assert (message.role, message.name, message.content) == ("user", "Anna", "Good evening.")
    assert message.record == record.id
    assert message.parts[0].origin == f"history:{record.id}"


def test_projected_tool_calls_and_results_keep_their_ids():
    call = {"id": "c1", "name": "look", "arguments": '{"at": "sea"}'}
    records = stored(
        [
            a_new_record("", kind=RecordKind.TOOL_CALL, meta={"tool_calls": [call]}),
            a_new_record("Waves.", kind=RecordKind.TOOL_RESULT, meta={"tool_call_id": "c1"}),
        ]
    )
    asked, answered = project_records(records)

    assert asked.tool_calls == (ToolCall(id="c1", name="look", arguments='{"at": "sea"}'),)
    assert (answered.role, answered.tool_call_id) == ("tool", "c1")


def test_history_leaves_out_texts_of_single_prompts_and_records_without_a_message():
    records = stored(
        [
            a_new_record("Hello.", name="Anna"),
            a_new_record("Dusk.", kind=RecordKind.CONTEXT_BLOCK),
            a_new_record("Good evening.", kind=RecordKind.ASSISTANT),
            a_new_record("answered", kind=RecordKind.RUN_END),
        ]
    )

    assert [m.content for m in project_records(records)] == ["Hello.", "Good evening."]


def test_history_of_newest_records_has_the_indexes_of_the_whole_history():
    records = a_conversation(10)
    window = project_records(records[4:], earlier=4, earlier_users=2)
    whole = project_records(records)

    assert window.stop == whole.stop
    assert window[7] == whole[7]
    assert window.user_messages == whole.user_messages


def test_history_is_empty_without_records():
    assert len(project_records([])) == 0


def test_projection_is_deterministic():
    records = a_conversation(5)

    assert [m.wire() for m in project_records(records)] == [
        m.wire() for m in project_records(records)
    ]


class TestToolResults:
    CALLS = [
        {"id": "c1", "name": "look", "arguments": "{}"},
        {"id": "c2", "name": "take", "arguments": "{}"},
    ]

    def asked(self):
        return a_new_record("", kind=RecordKind.TOOL_CALL, meta={"tool_calls": self.CALLS})

    def result(self, call: str, body: str):
        return a_new_record(body, kind=RecordKind.TOOL_RESULT, meta={"tool_call_id": call})

    def test_tool_result_comes_right_after_its_call_in_the_history(self):
        records = stored(
            [
                a_new_record("Well?"),
                self.asked(),
                a_new_record("Hello!"),
                self.result("c2", "Taken."),
                a_new_record("Anybody?"),
                self.result("c1", "The sea."),
            ]
        )

        said = [message.content for message in project_records(records)]
        assert said == ["Well?", "", "Taken.", "The sea.", "Hello!", "Anybody?"]

    @pytest.mark.req("S2-05")
    def test_tool_result_without_its_call_comes_first_in_the_history(self):
        records = stored([a_new_record("Well?"), self.result("c9", "A boat.")])

        history = project_records(records)

        assert [message.content for message in history] == ["A boat.", "Well?"]
        assert history.after_orphan_results(0) == 1

    def test_message_with_tool_calls_does_not_count_as_a_reply(self):
        records = stored([self.asked(), a_new_record("Here.", kind=RecordKind.ASSISTANT)])

        assert project_records(records).replies == 1


def _count_messages_left_in_memory(text, *, lets_go):
    """Return how many messages with this text stay in memory once nothing refers to them.

    The garbage collector is off, so messages in a reference cycle stay in memory. `lets_go` calls
    `release_messages` first.
    """
    gc.collect()
    gc.disable()
    try:
        messages = [message_of(record) for record in stored([a_new_record(text)] * 3)]
        adapt_messages(chat_messages(messages), profile=RoleProfile())
        assert [record_of(message).body for message in messages] == [text] * 3
        if lets_go:
            release_messages(messages)
            assert [record_of(message).body for message in messages] == [text] * 3
            # a running turn may still use released messages
            adapt_messages(chat_messages(messages), profile=RoleProfile())
            sent_messages([Handle(record=record_of(m), block="history") for m in messages])
        del messages
        return sum(type(one) is Message and one.content == text for one in gc.get_objects())
    finally:
        gc.enable()


def test_released_messages_are_freed_without_the_garbage_collector():
    assert _count_messages_left_in_memory("Held.", lets_go=False) == 3
    assert _count_messages_left_in_memory("Let go.", lets_go=True) == 0
