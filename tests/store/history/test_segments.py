"""Test segments: a compaction is one commit, and the old segment stays readable."""

import pytest
from django.db import DatabaseError

from evennia_ai import models
from evennia_ai.engine.errors import HistoryConflictError, StoreError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import (
    append_records,
    begin_segment,
    get_or_open_conversation,
    opening_summary,
    records_in,
)
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from tests.store.builders import a_line, a_reply, a_turn, give, history_in, said, talked


def a_summary(body="They spoke of the tide."):
    return a_line(body, kind=RecordKind.SUMMARY, role="user", name="")


def compacted(where, *, keep: int):
    """Compact the conversation to a summary and its newest messages."""
    now = windows(where.id).history
    return begin_segment(where, a_summary(), summarised=now, first_kept=now.stop - keep)


@pytest.fixture
def quay():
    quay = get_or_open_conversation("12", kind="room", place_ref="3")
    talked(quay, 5)
    return quay


@pytest.mark.req("S2-20")
def test_summary_replaces_the_older_messages(quay):
    compacted(quay, keep=3)

    assert said(quay) == ["They spoke of the tide.", "Answer 3.", "Line 4.", "Answer 4."]
    forget_everything()
    assert said(quay) == ["They spoke of the tide.", "Answer 3.", "Line 4.", "Answer 4."]


@pytest.mark.req("S2-20")
def test_summary_names_its_sources_and_what_was_kept(quay):
    record = compacted(quay, keep=3)

    assert (record.segment, record.seq) == (2, 1)
    assert record.meta["compacted_from"] == [1, "1.1", "1.7"]
    assert record.meta["tail"] == ["1.8", "1.9", "1.10"]


def test_later_messages_follow_in_the_new_segment(quay):
    compacted(quay, keep=1)
    append_records(quay, [a_line("And now?"), a_reply()])

    assert said(quay) == ["They spoke of the tide.", "Answer 4.", "And now?", "Evening."]
    assert record_rows.records_of(quay)[-1].place == "2.3"
    assert verify(quay) is None


def test_messages_since_the_request_for_a_summary_are_kept(quay):
    before = windows(quay.id).history
    append_records(quay, [a_line("Wait!")])
    begin_segment(quay, a_summary(), summarised=before, first_kept=before.stop - 1)

    assert said(quay) == ["They spoke of the tide.", "Answer 4.", "Wait!"]


def test_counts_and_indexes_continue_in_the_new_segment(quay):
    before = windows(quay.id).history
    compacted(quay, keep=3)
    now = windows(quay.id).history

    assert (now.stop, now.user_messages, now.replies) == (before.stop, 5, 5)
    assert now[now.stop - 1] is before[before.stop - 1]


@pytest.mark.req("S2-20")
def test_old_segment_stays_readable(quay):
    old = said(quay)
    compacted(quay, keep=3)
    append_records(quay, [a_line("And now?")])

    assert [message.content for message in history_in(quay, 1)] == old
    assert len(list(records_in(quay, 1))) == 10
    assert [message.content for message in history_in(quay, 2)] == said(quay)


def test_segment_can_be_compacted_again(quay):
    compacted(quay, keep=3)
    talked(quay, 2, start=5)
    compacted(quay, keep=5)
    warm = said(quay)
    forget_everything()

    assert warm == said(quay)
    assert warm[:3] == ["They spoke of the tide.", "Answer 4.", "Line 5."]
    assert windows(quay.id).end.segment == 3


@pytest.mark.req("S2-20")
def test_failed_commit_keeps_the_old_segment(quay, monkeypatch):
    old = said(quay)

    def refuse(*_, **__):
        raise DatabaseError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(Insert, "__call__", refuse)
        with pytest.raises(StoreError, match="disk full"):
            compacted(quay, keep=3)

    assert said(quay) == old
    forget_everything()
    assert said(quay) == old
    assert windows(quay.id).end.segment == 1


@pytest.mark.req("S2-31")
def test_summary_of_an_ended_segment_is_refused(quay):
    old = windows(quay.id).history
    compacted(quay, keep=3)

    with pytest.raises(HistoryConflictError):
        begin_segment(quay, a_summary(), summarised=old, first_kept=old.stop - 1)
    assert windows(quay.id).end.segment == 2


@pytest.mark.req("S2-20")
@pytest.mark.parametrize("first_kept", [-1, 0, 11])
def test_summary_covers_at_least_one_existing_message(quay, first_kept):
    with pytest.raises(StoreError, match="nothing was written"):
        begin_segment(quay, a_summary(), summarised=windows(quay.id).history, first_kept=first_kept)


@pytest.mark.req("S2-20")
def test_tool_result_is_not_separated_from_its_call(quay):
    call = {"id": "c1", "name": "look", "arguments": "{}"}
    append_records(
        quay,
        [
            a_line("", kind=RecordKind.TOOL_CALL, role="assistant", meta={"tool_calls": [call]}),
            a_line("Waves.", kind=RecordKind.TOOL_RESULT, role="tool", meta={"tool_call_id": "c1"}),
        ],
    )
    with pytest.raises(StoreError, match="keep its call with it"):
        compacted(quay, keep=1)


def test_summary_stays_in_the_prompt_when_the_old_segment_had_dropped_messages(quay):
    a_turn(quay, cut=9)
    compacted(quay, keep=8)
    warm = windows(quay.id).cut
    forget_everything()

    assert (warm, windows(quay.id).cut) == (0, 0)


@pytest.mark.req("S2-20", "S2-31")
def test_segment_written_by_another_process_is_not_left(quay):
    newest = models.Record.objects.order_by("-pk").first()
    windows(quay.id)
    models.Record.objects.create(
        conversation_id=quay.id,
        segment=1,
        seq=newest.seq + 1,
        kind="user",
        role="user",
        body="From elsewhere.",
        content_sha256="x",
        sha256="x",
        messages=11,
        users=6,
        replies=5,
        created_at=0.0,
    )
    with pytest.raises(HistoryConflictError):
        compacted(quay, keep=3)
    assert said(quay)[-1] == "From elsewhere."
    assert windows(quay.id).end.segment == 1


def test_opening_summary_is_found_in_a_long_segment(quay):
    assert opening_summary(quay.id, windows(quay.id).end.segment) is None
    made = compacted(quay, keep=1)
    talked(quay, 3)

    assert opening_summary(quay.id, windows(quay.id).end.segment).id == made.id


def test_texts_of_prompts_are_stored_once_per_segment(quay):
    a_turn(quay)
    a_turn(quay)
    compacted(quay, keep=2)
    a_turn(quay)
    texts = [(r.segment, r.body) for r in record_rows.records_of(quay) if "Stay in" in r.body]

    assert texts == [(1, "Stay in character."), (2, "Stay in character.")]
    assert turns.last_turn("12").manifest.segment == 2


class TestAnotherProcess:
    """A process that has not noticed the new segment yet."""

    @pytest.fixture
    def stale(self, quay):
        """The window of that process after the segment has ended."""
        known = windows(quay.id)
        compacted(quay, keep=3)
        return known

    @pytest.mark.req("S2-31")
    def test_other_process_cannot_write_to_the_ended_segment(self, quay, stale, monkeypatch):
        with monkeypatch.context() as behind:
            give(windows, stale, patch=behind)
            with pytest.raises(HistoryConflictError):
                append_records(quay, [a_line("Late.")])

        assert verify(quay) is None
        assert "Late." not in [r.body for r in record_rows.records_of(quay)]

    @pytest.mark.req("S2-31")
    def test_other_process_continues_in_the_new_segment_after_reading(
        self, quay, stale, monkeypatch
    ):
        with monkeypatch.context() as behind:
            give(windows, stale, patch=behind)
            with pytest.raises(HistoryConflictError):
                append_records(quay, [a_line("Late.")])
        (record,) = append_records(quay, [a_line("Late.")])

        assert record.place == "2.2"
        assert said(quay)[-1] == "Late."
