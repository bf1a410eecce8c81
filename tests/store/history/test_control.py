"""Test controls: what a builder undoes or corrects is hidden from prompts and stays readable."""

import json
import re
from dataclasses import replace
from functools import partial

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import HistoryConflictError, StoreError
from evennia_ai.engine.history.compaction.summaries import FRAME
from evennia_ai.engine.history.corrections import SpeakingTool
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.lorebook.activation.timers import LoreState, Spell
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import control, record_rows, turns, verifying
from evennia_ai.store.history.conversations import (
    append_records,
    begin_segment,
    get_or_open_conversation,
    opening_summary,
)
from evennia_ai.store.history.model_requests import (
    Consolidated,
    Observed,
    ask_to_decide,
    commit_decision,
    commit_observation,
)
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.transcripts import export_lines, import_lines
from evennia_ai.store.history.windows import WINDOW_MESSAGES, lore_states, remember_lore, windows
from tests.engine.history.builders import a_prompt
from tests.store.builders import a_line, a_reply, a_turn, history_in, said, talked
from tests.store.history.test_windows import SUMMARY, a_call, a_result, cold_shape, shape

SAYS = {"say": SpeakingTool(argument="text", result=re.compile(r'(You say: ").*(")'))}


def a_say(text: str, *, call: str = "s"):
    """Return a call of the tool that says something."""
    told = {"id": call, "name": "say", "arguments": json.dumps({"text": text})}
    return replace(a_call(call), meta={"tool_calls": [told]})


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def exchanged(where, *numbers: int) -> None:
    """Play one whole turn for each number."""
    for number in numbers:
        a_turn(where, f"Line {number}.", reply=f"Answer {number}.")


def tell_remembered(where) -> None:
    """Record that a model was asked what to remember."""
    commit_observation(where, Observed(outcome="nothing", state=Consolidated()), asked=None)


def tell_silent(where) -> None:
    """Record that a model was asked whether to answer the last line."""
    question = [Message(role="system", content="Is this for you?")]
    event = record_saying(where, "Line 3.")
    asked = ask_to_decide(where, question, (), (), event=event, model="tiny", schema=None)
    commit_decision(where, asked, outcome="silent", reply="no")


def record_saying(where, body: str):
    return next(one for one in record_rows.records_of(where) if one.body == body)


def is_whole(where) -> bool:
    """Check that memory, rows, chain and every older turn that was not erased agree."""
    assert shape(where) == cold_shape(where)
    assert verifying.verify(where) is None
    for turn in turns_in_order(where.npc_ref):
        if turn.manifest.erased:
            continue
        assert replay_turn(turn.manifest, record_rows.records(turn.manifest.sent_ids)).is_same
    return True


class TestReset:
    def test_reset_hides_all_messages_and_keeps_them_readable(self, quay):
        exchanged(quay, 1, 2)
        record = control.reset_conversation(quay, by=trusted("Builder"))

        assert said(quay) == []
        assert (record.kind, record.place) == (RecordKind.CONTROL, "2.1")
        assert record.meta["by"] == "Builder"
        assert [m.content for m in history_in(quay, 1)] == [
            "Line 1.",
            "Answer 1.",
            "Line 2.",
            "Answer 2.",
        ]
        assert is_whole(quay)

    def test_reset_starts_counts_at_zero(self, quay):
        exchanged(quay, 1, 2)
        control.reset_conversation(quay, by=trusted("Builder"))
        exchanged(quay, 3)
        now = windows(quay.id).history

        assert (now.earlier, now.stop, now.user_messages, now.replies) == (0, 2, 1, 1)
        assert is_whole(quay)

    def test_reset_clears_the_lore_state(self, quay):
        exchanged(quay, 1)
        remember_lore(quay, LoreState(sticky={"fog": Spell(1, 5)}), turn=1)
        control.reset_conversation(quay, by=trusted("Builder"))

        assert lore_states(quay.id) == LoreState()

    def test_reset_lets_the_npc_greet_again(self, quay):
        exchanged(quay, 1)
        control.reset_conversation(quay, by=trusted("Builder"))

        assert windows(quay.id).first_reply is None
        forget_everything()
        assert windows(quay.id).first_reply is None

    def test_reset_without_messages_is_refused(self, quay):
        exchanged(quay, 1)
        control.reset_conversation(quay, by=trusted("Builder"))

        with pytest.raises(StoreError, match="nothing was changed"):
            control.reset_conversation(quay, by=trusted("Builder"))
        assert windows(quay.id).end.segment == 2


class TestUndo:
    @pytest.mark.req("S2-08")
    def test_undo_hides_the_newest_exchange(self, quay):
        exchanged(quay, 1, 2)
        (taken,) = control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert [record.body for record in taken.records] == ["Line 2.", "Answer 2."]
        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    @pytest.mark.parametrize("tell", [tell_remembered, tell_silent])
    def test_undo_ignores_requests_that_are_no_exchange(self, quay, tell):
        exchanged(quay, 1, 2, 3)
        tell(quay)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1.", "Line 2.", "Answer 2."]

    def test_second_undo_hides_the_exchange_before(self, quay):
        exchanged(quay, 1, 2, 3)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    def test_undo_hides_several_exchanges(self, quay):
        exchanged(quay, 1, 2, 3)
        taken = control.undo_exchanges(quay, 2, by=trusted("Builder"))

        assert len(taken) == 2
        assert said(quay) == ["Line 1.", "Answer 1."]

    def test_undo_corrects_the_counts(self, quay):
        exchanged(quay, 1, 2, 3)
        control.undo_exchanges(quay, 2, by=trusted("Builder"))
        now = windows(quay.id).history

        assert (now.stop, now.user_messages, now.replies) == (2, 1, 1)

    def test_undo_keeps_what_was_heard_later(self, quay):
        exchanged(quay, 1, 2)
        append_records(quay, [a_line("Nobody asked.")])
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1.", "Nobody asked."]

    def test_undo_hides_a_call_with_its_result_and_what_was_seen_meanwhile(self, quay):
        exchanged(quay, 1)
        begun = a_turn(quay, "Line 2.", reply=None)
        turns.add_records(begun, [a_call("c1")])
        append_records(quay, [a_line("Oren gives Anna a rope.")])
        turns.finish_turn(begun, [a_result("c1", "Done."), a_reply("Here.")])
        (taken,) = control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert taken.tools == ("look",)
        assert [record.body for record in taken.meanwhile] == ["Oren gives Anna a rope."]
        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    def test_undo_keeps_words_that_wait_for_an_answer(self, quay):
        begun = a_turn(quay, "Line 1.", reply=None)
        (waits,) = append_records(quay, [a_line("And me?")])
        turns.finish_turn(begun, [a_reply("Answer 1.")])
        control.undo_exchanges(quay, 1, by=trusted("Builder"), waiting={waits.id})

        assert said(quay) == ["And me?"]

    def test_undo_restores_the_earlier_lore_state(self, quay):
        exchanged(quay, 1)
        before = LoreState(sticky={"fog": Spell(1, 5)})
        append_records(quay, [a_line("Line 2.")])
        heard = record_saying(quay, "Line 2.")
        draft = make_draft(
            a_prompt([heard]),
            event=heard,
            model="tiny",
            inputs={"lore_state": before.to_plain()},
        )
        begun = turns.begin_turn(quay, draft=draft, event=heard, lore=LoreState()).turn
        turns.finish_turn(begun, [a_reply("Answer 2.")])
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert lore_states(quay.id) == before

    def test_undo_without_an_answered_event_is_refused(self, quay):
        append_records(quay, [a_line("Hm.")])

        with pytest.raises(StoreError, match="no exchange left"):
            control.undo_exchanges(quay, 1, by=trusted("Builder"))

    @pytest.mark.req("S2-31")
    def test_undo_is_refused_while_the_npc_answers(self, quay):
        exchanged(quay, 1)
        a_turn(quay, "Line 2.", reply=None)

        with pytest.raises(StoreError, match="is answering"):
            control.undo_exchanges(quay, 1, by=trusted("Builder"))
        assert said(quay)[0] == "Line 1."
        assert windows(quay.id).end.segment == 1

    @pytest.mark.req("S2-31")
    def test_prompt_made_before_an_undo_is_not_sent_after_it(self, quay):
        exchanged(quay, 1)
        (heard,) = append_records(quay, [a_line("Line 2.")])
        draft = make_draft(a_prompt([heard]), event=heard, model="tiny")
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        with pytest.raises(HistoryConflictError):
            turns.begin_turn(quay, draft=draft, event=heard, composed_in=1)

    def test_undo_keeps_the_summary_in_its_place(self, quay):
        exchanged(quay, 1, 2, 3)
        now = windows(quay.id).history
        begin_segment(quay, SUMMARY, summarised=now, first_kept=2)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["They spoke of the tide.", "Line 2.", "Answer 2."]
        assert is_whole(quay)

    def test_undo_in_a_long_conversation_keeps_the_window(self, quay):
        talked(quay, WINDOW_MESSAGES)
        exchanged(quay, 1)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay)[-1] == f"Answer {WINDOW_MESSAGES - 1}."
        assert windows(quay.id).history.stop == 2 * WINDOW_MESSAGES
        assert is_whole(quay)


class TestRetry:
    def test_retry_hides_the_answer_and_keeps_the_event(self, quay):
        exchanged(quay, 1, 2)
        newest = next(control.list_exchanges(quay))
        record = control.take_back_answer(quay, newest, by=trusted("Builder"), hint="Be brief.")

        assert said(quay) == ["Line 1.", "Answer 1.", "Line 2."]
        assert record.body == "Be brief."
        assert is_whole(quay)

    def test_retried_answer_is_still_one_exchange(self, quay):
        exchanged(quay, 1, 2)
        control.take_back_answer(quay, next(control.list_exchanges(quay)), by=trusted("Builder"))
        heard = record_saying(quay, "Line 2.")
        draft = make_draft(a_prompt([heard]), event=heard, model="tiny")
        turns.finish_turn(
            turns.begin_turn(quay, draft=draft, event=heard).turn, [a_reply("Better.")]
        )

        assert said(quay)[-2:] == ["Line 2.", "Better."]
        control.undo_exchanges(quay, 1, by=trusted("Builder"))
        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)


class TestCorrect:
    @pytest.mark.req("S2-12")
    def test_correction_replaces_the_words_in_place(self, quay):
        exchanged(quay, 1, 2)
        control.correct_utterance(
            quay, record_saying(quay, "Answer 1."), "Never.", by=trusted("Builder")
        )

        assert said(quay) == ["Line 1.", "Never.", "Line 2.", "Answer 2."]
        assert windows(quay.id).history.stop == 4
        assert is_whole(quay)

    def test_second_correction_replaces_the_first(self, quay):
        exchanged(quay, 1)
        first = record_saying(quay, "Answer 1.")
        control.correct_utterance(quay, first, "Never.", by=trusted("Builder"))
        control.correct_utterance(quay, first, "Always.", by=trusted("Builder"))
        assert said(quay) == ["Line 1.", "Always."]

        control.correct_utterance(
            quay, record_saying(quay, "Never."), "Sometimes.", by=trusted("Builder")
        )
        assert said(quay) == ["Line 1.", "Sometimes."]
        assert is_whole(quay)

    def test_corrected_words_are_hidden_with_their_exchange(self, quay):
        exchanged(quay, 1, 2)
        control.correct_utterance(
            quay, record_saying(quay, "Answer 2."), "Never.", by=trusted("Builder")
        )
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1."]

    @pytest.mark.req("S2-12")
    def test_corrected_tool_words_change_in_call_and_result(self, quay):
        exchanged(quay, 1)
        begun = a_turn(quay, "Line 2.", reply=None)
        turns.add_records(begun, [a_say("Aye, at noon.")])
        turns.finish_turn(begun, [a_result("s", 'You say: "Aye, at noon."'), a_reply("Answer 2.")])
        (call,) = (r for r in record_rows.records_of(quay) if r.kind is RecordKind.TOOL_CALL)
        control.correct_utterance(quay, call, "At dusk.", by=trusted("Builder"), tools=SAYS)

        _, _, _, now, result, _ = windows(quay.id).history
        assert [json.loads(call.arguments) for call in now.tool_calls] == [{"text": "At dusk."}]
        assert result.content == 'You say: "At dusk."'
        assert is_whole(quay)

        control.correct_utterance(quay, call, "Never.", by=trusted("Builder"), tools=SAYS)
        assert said(quay)[4] == 'You say: "Never."'
        control.undo_exchanges(quay, 1, by=trusted("Builder"))
        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    def test_correction_needs_the_number_of_one_of_several_utterances(self, quay):
        begun = a_turn(quay, "Line 1.", reply=None)
        turns.add_records(begun, [replace(a_say("Aye."), body="I nod.")])
        turns.finish_turn(begun, [a_result("s", 'You say: "Aye."')])
        call = record_saying(quay, "I nod.")
        correct = partial(
            control.correct_utterance, quay, call, "No.", by=trusted("Builder"), tools=SAYS
        )
        told = rf"#{call.id}.1 \(I nod.\), #{call.id}.2 \(Aye.\)"

        for which in (None, 0, 3):
            with pytest.raises(StoreError, match=told):
                correct(which=which)
        correct(which=2)
        assert said(quay) == ["Line 1.", "I nod.", 'You say: "No."']
        correct(which=1)
        assert said(quay) == ["Line 1.", "No.", 'You say: "No."']
        assert is_whole(quay)

    def test_hidden_words_cannot_be_corrected(self, quay):
        begun = a_turn(quay, "Line 1.", reply=None)
        turns.add_records(begun, [a_say("Aye.")])
        turns.finish_turn(begun, [a_result("s", "Not done: you cannot speak now."), a_reply("Hm.")])
        (call,) = (r for r in record_rows.records_of(quay) if r.kind is RecordKind.TOOL_CALL)

        with pytest.raises(StoreError, match="no words"):
            control.correct_utterance(quay, call, "No.", by=trusted("Builder"), tools=SAYS)

    def test_corrected_summary_stays_a_summary(self, quay):
        exchanged(quay, 1, 2, 3)
        summary = replace(SUMMARY, body=f"{FRAME}They spoke of the tide.")
        first = begin_segment(quay, summary, summarised=windows(quay.id).history, first_kept=4)
        before = windows(quay.id).history
        control.correct_utterance(quay, first, "They spoke of nothing.", by=trusted("Builder"))
        now = windows(quay.id).history

        assert said(quay) == [f"{FRAME}They spoke of nothing.", "Line 3.", "Answer 3."]
        assert (now.stop, now.user_messages) == (before.stop, before.user_messages)
        assert (
            opening_summary(quay.id, windows(quay.id).end.segment).body
            == f"{FRAME}They spoke of nothing."
        )
        assert is_whole(quay)

    def test_correcting_summarised_words_points_to_the_summary(self, quay):
        exchanged(quay, 1, 2)
        now = windows(quay.id).history
        first = begin_segment(quay, SUMMARY, summarised=now, first_kept=2)

        with pytest.raises(StoreError, match=f"part of summary #{first.id}"):
            control.correct_utterance(
                quay, record_saying(quay, "Answer 1."), "Never.", by=trusted("Builder")
            )

    @pytest.mark.parametrize("body", ["Line 1.", "answered"])
    def test_only_words_of_the_npc_can_be_corrected(self, quay, body):
        exchanged(quay, 1)

        with pytest.raises(StoreError, match="no words of the NPC"):
            control.correct_utterance(
                quay, record_saying(quay, body), "Never.", by=trusted("Builder")
            )
        assert windows(quay.id).end.segment == 1


def test_transcript_contains_all_controls(quay):
    exchanged(quay, 1, 2, 3)
    control.correct_utterance(
        quay, record_saying(quay, "Answer 1."), "Never.", by=trusted("Builder")
    )
    control.undo_exchanges(quay, 1, by=trusted("Builder"))
    other = import_lines(list(export_lines(quay)), npc_ref="77", by=trusted("Ada"))

    assert said(other) == said(quay) == ["Line 1.", "Never.", "Line 2.", "Answer 2."]
    assert is_whole(other)
    control.undo_exchanges(other, 1, by=trusted("Builder"))
    assert said(other) == ["Line 1.", "Never."]
