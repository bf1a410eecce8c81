"""Test that windows in memory equal what a new process reads, at a constant cost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.sending import SentMessages
from evennia_ai.engine.prompt.cache_account import Sent
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.conversations import (
    append_records,
    begin_segment,
    get_or_open_conversation,
)
from evennia_ai.store.history.windows import (
    KEPT,
    WINDOW_MESSAGES,
    remember_turn,
    windows,
)
from tests.properties import up_to
from tests.store.builders import a_line, a_reply, a_staying_text, said, talked

SUMMARY = a_line("They spoke of the tide.", kind=RecordKind.SUMMARY, role="system", name="")

WEIGHED = KEPT.weight


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def shape(where) -> tuple[object, ...]:
    """Return everything that distinguishes one window from another."""
    window = windows(where.id).history
    return (
        [(m.wire(), m.counted, m.stays, m.of, m.record) for m in window],
        (window.earlier, window.earlier_users, window.earlier_replies, window.segment),
    )


def cold_shape(where) -> tuple[object, ...]:
    forget_everything()
    return shape(where)


class TestTextsThatStay:
    def test_staying_text_is_placed_before_the_record_it_was_made_for(self, quay):
        (first, second) = append_records(quay, [a_line("One."), a_line("Two.")])
        append_records(quay, [a_staying_text("Dusk.", before=first.place)])
        append_records(quay, [a_staying_text("Rain.", before=second.place), a_reply()])

        assert said(quay) == ["Dusk.", "One.", "Rain.", "Two.", "Evening."]
        assert shape(quay) == cold_shape(quay)

    def test_several_staying_texts_for_one_record_keep_their_order(self, quay):
        (event,) = append_records(quay, [a_line("One.")])
        texts = [a_staying_text(text, before=event.place) for text in ("A.", "B.", "C.")]
        append_records(quay, texts)

        assert said(quay) == ["A.", "B.", "C.", "One."]
        assert shape(quay) == cold_shape(quay)

    def test_staying_text_without_event_is_placed_where_it_was_written(self, quay):
        append_records(quay, [a_line("One.")])
        append_records(quay, [a_staying_text("Dusk.", before=None), a_reply()])

        assert said(quay) == ["One.", "Dusk.", "Evening."]
        assert shape(quay) == cold_shape(quay)

    def test_staying_text_is_not_counted_and_names_its_subject(self, quay):
        (event,) = append_records(quay, [a_line("One.")])
        append_records(quay, [a_staying_text("Fog.", before=event.place, of="lore:fog")])
        (text, _) = windows(quay.id).history

        assert (text.counted, text.stays, text.of) == (False, True, "lore:fog")
        assert text.parts[0].origin == "lore:fog"
        assert windows(quay.id).history.user_messages == 1

    def test_staying_text_for_a_dropped_record_is_dropped(self, quay):
        (event,) = append_records(quay, [a_line("The oldest.")])
        talked(quay, 3 * WINDOW_MESSAGES // 2)
        append_records(quay, [a_staying_text("Late.", before=event.place)])
        forget_everything()

        assert "Late." not in said(quay)
        assert len(windows(quay.id).history) >= WINDOW_MESSAGES


def a_call(*ids: str):
    calls = [{"id": call, "name": "look", "arguments": "{}"} for call in ids]
    return a_line(
        "", kind=RecordKind.TOOL_CALL, role="assistant", name="", meta={"tool_calls": calls}
    )


def a_result(call: str, body: str):
    return a_line(
        body, kind=RecordKind.TOOL_RESULT, role="tool", name="", meta={"tool_call_id": call}
    )


class TestResultsOfTools:
    def test_late_tool_result_is_placed_after_its_call(self, quay):
        append_records(quay, [a_line("One."), a_call("c1", "c2")])
        append_records(quay, [a_line("Two.")])
        append_records(quay, [a_result("c1", "The sea."), a_line("Three.")])
        append_records(quay, [a_result("c2", "A boat."), a_reply()])

        assert said(quay) == ["One.", "", "The sea.", "A boat.", "Two.", "Three.", "Evening."]
        assert windows(quay.id).history.replies == 1
        assert shape(quay) == cold_shape(quay)

    @given(st.lists(st.sampled_from(["line", "call", "result"]), max_size=14))
    @settings(max_examples=up_to(40), deadline=None)
    def test_memory_equals_what_a_new_process_reads_in_any_order(self, steps):
        forget_everything()
        where = get_or_open_conversation(f"npc-{id(steps)}", kind="room", place_ref="3")
        waiting: list[str] = []
        for number, step in enumerate(steps):
            if step == "line":
                append_records(where, [a_line(f"Line {number}.")])
            elif step == "call":
                waiting += [f"{number}a", f"{number}b"]
                append_records(where, [a_call(*waiting[-2:])])
            elif waiting:
                append_records(where, [a_result(waiting.pop(0), f"Result {number}.")])

        assert shape(where) == cold_shape(where)


class TestOpening:
    @pytest.mark.parametrize("pairs", [3, WINDOW_MESSAGES // 2, WINDOW_MESSAGES])
    def test_grown_window_equals_a_freshly_read_one(self, quay, pairs):
        talked(quay, pairs)
        warm = shape(quay)
        cold = cold_shape(quay)

        assert warm[0][-len(cold[0]) :] == cold[0]
        assert windows(quay.id).history.stop == 2 * pairs
        assert windows(quay.id).history.user_messages == windows(quay.id).history.replies == pairs

    def test_window_has_all_messages_since_the_oldest_in_the_last_prompt(self, quay):
        talked(quay, 20)
        remember_turn(quay, {}, cut=17)
        talked(quay, WINDOW_MESSAGES)

        assert windows(quay.id).history.earlier <= 17


class TestWhatWasSent:
    """The last prompt counts towards the limit of messages in memory."""

    def test_memory_limit_counts_texts_in_addition_to_the_history(self, quay):
        talked(quay, 3)
        before = WEIGHED(windows(quay.id))
        self.is_sent(quay, texts=20)

        assert WEIGHED(windows(quay.id)) == before + 20

    def test_memory_limit_counts_the_whole_window_after_a_compaction(self, quay):
        talked(quay, 3)
        self.is_sent(quay, texts=20)
        before = WEIGHED(windows(quay.id))
        begin_segment(quay, SUMMARY, summarised=windows(quay.id).history, first_kept=6)

        assert len(windows(quay.id).history) == 1
        assert WEIGHED(windows(quay.id)) == before + 1

    def is_sent(self, where, *, texts):
        """Store a prompt with a number of texts as the last one of this conversation."""
        made = [Message("system", f"Text {number}.") for number in range(texts)]
        said = windows(where.id).history
        remember_turn(
            where,
            {},
            cut=0,
            sent=Sent(messages=[*made, *said], segment=said.segment),
            settled=SentMessages(texts=tuple(range(texts))),
        )


@settings(max_examples=up_to(25), deadline=None)
@given(
    steps=st.lists(
        st.sampled_from(["line", "reply", "stay_last", "stay_first", "silent", "segment"]),
        max_size=25,
    )
)
def test_history_read_from_the_database_equals_the_history_in_memory(steps):
    from django.db import transaction

    with transaction.atomic():
        quay = get_or_open_conversation("12", kind="room", place_ref="3")
        heard = []
        for number, step in enumerate(steps):
            _happens(quay, step, number, heard)
        warm = shape(quay)
        users, replies = windows(quay.id).history.user_messages, windows(quay.id).history.replies

        assert cold_shape(quay) == warm
        assert (windows(quay.id).history.user_messages, windows(quay.id).history.replies) == (
            users,
            replies,
        )
        transaction.set_rollback(True)
    forget_everything()


def _happens(quay, step, number, heard) -> None:
    if step == "line":
        heard += append_records(quay, [a_line(f"Line {number}.")])
    elif step == "reply":
        append_records(quay, [a_reply(f"Answer {number}.")])
    elif step == "silent":
        append_records(quay, [a_line("", kind=RecordKind.USAGE, role="system")])
    elif step == "segment" and len(windows(quay.id).history) > 2:
        now = windows(quay.id).history
        begin_segment(quay, SUMMARY, summarised=now, first_kept=now.earlier + 2)
    elif step.startswith("stay") and heard:
        event = heard[-1] if step == "stay_last" else heard[max(0, len(heard) - 2)]
        append_records(quay, [a_staying_text(f"Facts {number}.", before=event.place)])
