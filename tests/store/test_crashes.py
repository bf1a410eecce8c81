"""Test what an interrupted turn leaves, and how it is closed."""

import pytest
from django.db import connection
from django.db.utils import OperationalError

from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import NewRecord, RecordKind, find_broken
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.windows import windows
from tests.store.builders import seal_of_turn
from tests.store.history.test_turns import REPLY, begun, heard, states

SORRY = NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body="The water is loud today.")


def a_call(call_id="call-1"):
    call = {"id": call_id, "name": "ring_bell", "arguments": "{}"}
    return NewRecord(kind=RecordKind.TOOL_CALL, role="assistant", meta={"tool_calls": [call]})


def a_result(call_id="call-1"):
    meta = {"tool_call_id": call_id}
    return NewRecord(kind=RecordKind.TOOL_RESULT, role="tool", body="It rings.", meta=meta)


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


@pytest.fixture
def interrupted(quay):
    """A turn in the middle of a tool call, as another process finds it."""
    heard(quay)
    turn, _ = begun(quay)
    append_records(quay, [a_call()])
    forget_everything()
    return turn


@pytest.mark.req("S2-29")
def test_interrupted_tool_call_gets_a_result_that_says_that_the_server_stopped(quay, interrupted):
    turns.close_interrupted()
    *_, result, end = record_rows.records_of(quay)

    assert (result.kind, result.role) == (RecordKind.TOOL_RESULT, "tool")
    assert result.meta["tool_call_id"] == "call-1"
    assert "the server stopped before the reply" in result.body
    assert end.meta == {"turn": 1, "state": "interrupted", "seal": seal_of_turn(1)}


def test_prompt_after_an_interruption_has_call_and_result_together(quay, interrupted):
    turns.close_interrupted()
    call, result = list(windows(quay.id).history)[-2:]

    assert [made.id for made in call.tool_calls] == [result.tool_call_id] == ["call-1"]


def test_failed_turn_closes_its_call_before_the_fallback_line(quay, interrupted):
    (said,) = turns.fail_turn(interrupted, "the endpoint is away", new=[SORRY])

    assert said.body == SORRY.body
    assert [message.role for message in windows(quay.id).history][-3:] == [
        "assistant",
        "tool",
        "assistant",
    ]


def test_call_with_a_result_is_not_changed(quay):
    heard(quay)
    turn, _ = begun(quay)
    append_records(quay, [a_call(), a_result()])
    turns.fail_turn(turn, "the endpoint is away")

    kinds = [record.kind for record in record_rows.records_of(quay)]
    assert kinds.count(RecordKind.TOOL_RESULT) == 1


def test_calls_of_earlier_turns_are_not_changed(quay):
    append_records(quay, [a_call("old")])
    heard(quay)
    turn, _ = begun(quay)
    turns.fail_turn(turn, "the endpoint is away")

    assert RecordKind.TOOL_RESULT not in [record.kind for record in record_rows.records_of(quay)]


def test_chain_is_valid_after_closing_interrupted_turns(quay, interrupted):
    turns.close_interrupted()

    assert find_broken(record_rows.records_of(quay)) is None


@pytest.mark.req("S2-29")
def test_turns_begun_since_the_start_are_not_interrupted(quay):
    heard(quay)
    turn, _ = begun(quay)

    assert turns.close_interrupted(begun_before=turn.created_at) == 0
    assert states() == ["open"]
    assert turns.close_interrupted(begun_before=turn.created_at + 1) == 1


@pytest.mark.req("S2-29")
def test_spoken_start_of_a_reply_counts_as_the_npcs_words(quay):
    heard(quay)
    turn, _ = begun(quay)
    turns.commit_spoken(turn, "Aye, at dusk.")
    forget_everything()
    turns.close_interrupted()

    assert list(windows(quay.id).history)[-1].content == "Aye, at dusk. —"


def test_turns_that_cannot_be_closed_now_are_closed_later(quay, interrupted):
    def refused(execute, sql, *args):
        if "evennia_ai_turn" in sql:
            raise OperationalError("database is locked")
        return execute(sql, *args)

    with connection.execute_wrapper(refused), pytest.raises(StoreError, match="is locked"):
        turns.close_interrupted()
    assert states() == ["open"]
    assert turns.close_interrupted() == 1


@pytest.mark.parametrize("table", ["turn", "record"])
def test_failed_end_of_a_turn_changes_nothing(quay, table):
    def refused(execute, sql, *args):
        if not sql.startswith("SELECT") and f"evennia_ai_{table}" in sql:
            raise OperationalError("database or disk is full")
        return execute(sql, *args)

    heard(quay)
    turn, _ = begun(quay)
    before = record_rows.records_of(quay)
    with connection.execute_wrapper(refused), pytest.raises(StoreError, match="disk is full"):
        turns.finish_turn(turn, [REPLY])
    assert states() == ["open"]
    assert record_rows.records_of(quay) == before

    turns.finish_turn(turn, [REPLY])
    assert states() == ["done"]
    assert find_broken(record_rows.records_of(quay)) is None
