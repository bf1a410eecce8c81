"""Control: what a builder takes back or corrects counts no more, and all of it stays readable."""

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
    """A call of the tool that says something."""
    told = {"id": call, "name": "say", "arguments": json.dumps({"text": text})}
    return replace(a_call(call), meta={"tool_calls": [told]})


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def exchanged(where, *numbers: int) -> None:
    """Whole turns, one for each number."""
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
    """Whether memory, the rows, the chain and every older turn that was not erased agree."""
    assert shape(where) == cold_shape(where)
    assert verifying.verify(where) is None
    for turn in turns_in_order(where.npc_ref):
        if turn.manifest.erased:
            continue
        assert replay_turn(turn.manifest, record_rows.records(turn.manifest.sent_ids)).is_same
    return True


class TestReset:
    def test_nothing_counts_any_more_and_all_of_it_is_readable(self, quay):
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

    def test_counts_begin_at_nothing(self, quay):
        exchanged(quay, 1, 2)
        control.reset_conversation(quay, by=trusted("Builder"))
        exchanged(quay, 3)
        now = windows(quay.id).history

        assert (now.earlier, now.stop, now.user_messages, now.replies) == (0, 2, 1, 1)
        assert is_whole(quay)

    def test_lore_remembers_nothing_any_more(self, quay):
        exchanged(quay, 1)
        remember_lore(quay, LoreState(sticky={"fog": Spell(1, 5)}), turn=1)
        control.reset_conversation(quay, by=trusted("Builder"))

        assert lore_states(quay.id) == LoreState()

    def test_the_npc_has_said_nothing_yet_so_that_it_may_greet(self, quay):
        exchanged(quay, 1)
        control.reset_conversation(quay, by=trusted("Builder"))

        assert windows(quay.id).first_reply is None
        forget_everything()
        assert windows(quay.id).first_reply is None

    def test_where_nothing_counts_there_is_nothing_to_reset(self, quay):
        exchanged(quay, 1)
        control.reset_conversation(quay, by=trusted("Builder"))

        with pytest.raises(StoreError, match="nothing was changed"):
            control.reset_conversation(quay, by=trusted("Builder"))
        assert windows(quay.id).end.segment == 2


class TestUndo:
    @pytest.mark.req("S2-08")
    def test_the_newest_exchange_counts_no_more(self, quay):
        exchanged(quay, 1, 2)
        (taken,) = control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert [record.body for record in taken.records] == ["Line 2.", "Answer 2."]
        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    @pytest.mark.parametrize("tell", [tell_remembered, tell_silent])
    def test_what_a_model_was_asked_besides_is_no_exchange(self, quay, tell):
        exchanged(quay, 1, 2, 3)
        tell(quay)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1.", "Line 2.", "Answer 2."]

    def test_twice_goes_further_back(self, quay):
        exchanged(quay, 1, 2, 3)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1."]
        assert is_whole(quay)

    def test_several_at_once(self, quay):
        exchanged(quay, 1, 2, 3)
        taken = control.undo_exchanges(quay, 2, by=trusted("Builder"))

        assert len(taken) == 2
        assert said(quay) == ["Line 1.", "Answer 1."]

    def test_counts_are_those_of_what_is_left(self, quay):
        exchanged(quay, 1, 2, 3)
        control.undo_exchanges(quay, 2, by=trusted("Builder"))
        now = windows(quay.id).history

        assert (now.stop, now.user_messages, now.replies) == (2, 1, 1)

    def test_what_was_heard_later_stays(self, quay):
        exchanged(quay, 1, 2)
        append_records(quay, [a_line("Nobody asked.")])
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1.", "Nobody asked."]

    def test_a_call_goes_with_what_came_of_it_and_with_what_was_seen_meanwhile(self, quay):
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

    def test_what_another_waits_to_be_answered_for_stays(self, quay):
        begun = a_turn(quay, "Line 1.", reply=None)
        (waits,) = append_records(quay, [a_line("And me?")])
        turns.finish_turn(begun, [a_reply("Answer 1.")])
        control.undo_exchanges(quay, 1, by=trusted("Builder"), waiting={waits.id})

        assert said(quay) == ["And me?"]

    def test_lore_remembers_what_it_did_before(self, quay):
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

    def test_there_is_nothing_to_take_back_where_nobody_was_answered(self, quay):
        append_records(quay, [a_line("Hm.")])

        with pytest.raises(StoreError, match="no exchange left"):
            control.undo_exchanges(quay, 1, by=trusted("Builder"))

    @pytest.mark.req("S2-31")
    def test_not_while_it_answers(self, quay):
        exchanged(quay, 1)
        a_turn(quay, "Line 2.", reply=None)

        with pytest.raises(StoreError, match="is answering"):
            control.undo_exchanges(quay, 1, by=trusted("Builder"))
        assert said(quay)[0] == "Line 1."
        assert windows(quay.id).end.segment == 1

    @pytest.mark.req("S2-31")
    def test_a_prompt_that_was_made_before_is_not_sent_after_it(self, quay):
        exchanged(quay, 1)
        (heard,) = append_records(quay, [a_line("Line 2.")])
        draft = make_draft(a_prompt([heard]), event=heard, model="tiny")
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        with pytest.raises(HistoryConflictError):
            turns.begin_turn(quay, draft=draft, event=heard, composed_in=1)

    def test_a_summary_keeps_its_place(self, quay):
        exchanged(quay, 1, 2, 3)
        now = windows(quay.id).history
        begin_segment(quay, SUMMARY, summarised=now, first_kept=2)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["They spoke of the tide.", "Line 2.", "Answer 2."]
        assert is_whole(quay)

    def test_in_a_long_conversation_the_window_is_what_is_kept(self, quay):
        talked(quay, WINDOW_MESSAGES)
        exchanged(quay, 1)
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay)[-1] == f"Answer {WINDOW_MESSAGES - 1}."
        assert windows(quay.id).history.stop == 2 * WINDOW_MESSAGES
        assert is_whole(quay)


class TestRetry:
    def test_the_answer_goes_and_the_event_stays(self, quay):
        exchanged(quay, 1, 2)
        newest = next(control.list_exchanges(quay))
        record = control.take_back_answer(quay, newest, by=trusted("Builder"), hint="Be brief.")

        assert said(quay) == ["Line 1.", "Answer 1.", "Line 2."]
        assert record.body == "Be brief."
        assert is_whole(quay)

    def test_answered_again_it_is_still_one_exchange(self, quay):
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
    def test_the_new_words_stand_in_the_place_of_the_old(self, quay):
        exchanged(quay, 1, 2)
        control.correct_utterance(
            quay, record_saying(quay, "Answer 1."), "Never.", by=trusted("Builder")
        )

        assert said(quay) == ["Line 1.", "Never.", "Line 2.", "Answer 2."]
        assert windows(quay.id).history.stop == 4
        assert is_whole(quay)

    def test_of_two_corrections_the_newest_counts(self, quay):
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

    def test_what_was_corrected_goes_with_its_exchange(self, quay):
        exchanged(quay, 1, 2)
        control.correct_utterance(
            quay, record_saying(quay, "Answer 2."), "Never.", by=trusted("Builder")
        )
        control.undo_exchanges(quay, 1, by=trusted("Builder"))

        assert said(quay) == ["Line 1.", "Answer 1."]

    @pytest.mark.req("S2-12")
    def test_words_of_a_tool_are_others_in_the_call_and_in_what_came_of_it(self, quay):
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

    def test_of_several_words_in_a_record_one_is_named(self, quay):
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

    def test_words_that_nobody_heard_cannot_be_corrected(self, quay):
        begun = a_turn(quay, "Line 1.", reply=None)
        turns.add_records(begun, [a_say("Aye.")])
        turns.finish_turn(begun, [a_result("s", "Not done: you cannot speak now."), a_reply("Hm.")])
        (call,) = (r for r in record_rows.records_of(quay) if r.kind is RecordKind.TOOL_CALL)

        with pytest.raises(StoreError, match="no words"):
            control.correct_utterance(quay, call, "No.", by=trusted("Builder"), tools=SAYS)

    def test_a_summary_tells_something_else_and_stays_one(self, quay):
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

    def test_what_a_summary_stands_for_tells_that_the_summary_can_be_corrected(self, quay):
        exchanged(quay, 1, 2)
        now = windows(quay.id).history
        first = begin_segment(quay, SUMMARY, summarised=now, first_kept=2)

        with pytest.raises(StoreError, match=f"part of summary #{first.id}"):
            control.correct_utterance(
                quay, record_saying(quay, "Answer 1."), "Never.", by=trusted("Builder")
            )

    @pytest.mark.parametrize("body", ["Line 1.", "answered"])
    def test_only_what_the_npc_said_can_be_corrected(self, quay, body):
        exchanged(quay, 1)

        with pytest.raises(StoreError, match="no words of the NPC"):
            control.correct_utterance(
                quay, record_saying(quay, body), "Never.", by=trusted("Builder")
            )
        assert windows(quay.id).end.segment == 1


def test_a_transcript_takes_all_of_it_along(quay):
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
