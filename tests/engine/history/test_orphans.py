"""Tool calls without a result (orphans), and the results that close them."""

import pytest

from evennia_ai.engine.history.records import NewRecord, RecordKind, closing_results, orphan_calls


def call(*ids):
    calls = [{"id": call_id, "name": "ring_bell", "arguments": "{}"} for call_id in ids]
    return NewRecord(kind=RecordKind.TOOL_CALL, role="assistant", meta={"tool_calls": calls})


def result(call_id):
    meta = {"tool_call_id": call_id}
    return NewRecord(kind=RecordKind.TOOL_RESULT, role="tool", body="It rings.", meta=meta)


SAID = NewRecord(kind=RecordKind.USER, role="user", body="Oren?")


def test_records_without_tool_calls_have_no_orphan_calls():
    assert orphan_calls([]) == ()
    assert orphan_calls([SAID]) == ()


def test_tool_call_with_a_result_is_no_orphan_call():
    assert orphan_calls([SAID, call("a"), SAID, result("a")]) == ()


@pytest.mark.req("S2-29")
def test_tool_call_without_a_result_is_an_orphan_call():
    assert orphan_calls([call("a"), result("a"), call("b")]) == ("b",)


def test_orphan_calls_are_the_tool_calls_without_results_in_order():
    assert orphan_calls([call("c", "a", "b"), result("a")]) == ("c", "b")


@pytest.mark.req("S2-29")
def test_closing_result_names_its_tool_call_and_how_the_turn_ended():
    first, second = closing_results([call("a", "b")], outcome="the server stopped")
    assert (first.meta["tool_call_id"], second.meta["tool_call_id"]) == ("a", "b")
    assert first.kind is RecordKind.TOOL_RESULT
    assert first.role == "tool"
    assert "the server stopped" in first.body


@pytest.mark.req("S2-29")
def test_closing_results_leave_no_tool_call_without_result():
    records = [call("a", "b"), result("b")]
    assert orphan_calls([*records, *closing_results(records, outcome="it failed")]) == ()
