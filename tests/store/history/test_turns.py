"""Test turns: the manifest before the call, the reply with the end, and nothing twice."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import (
    HistoryConflictError,
    NotStoredError,
    StoreError,
    TurnClosedError,
)
from evennia_ai.engine.history.records import NewRecord, RecordKind, find_broken
from evennia_ai.engine.history.turn.replay import replay_messages
from evennia_ai.engine.history.turn.sending import make_draft
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import messages_sha256
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import record_rows, turns
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.windows import windows
from evennia_ai.store.model_calls import NewCall
from tests.engine.history.builders import a_prompt
from tests.store.builders import give, seal_of_turn

REPLY = NewRecord(kind=RecordKind.ASSISTANT, role="assistant", name="Oren", body="Evening.")


def heard(where, body="Good evening, Oren."):
    (record,) = append_records(
        where, [NewRecord(kind=RecordKind.EVENT, role="user", name="Anna", body=body)]
    )
    return record


def begun(where, *, limit_tokens=4000, **fields):
    """Begin a turn that answers the newest record, with this prompt."""
    begun, prompt = begun_with_messages(where, limit_tokens=limit_tokens, **fields)
    return begun.turn, prompt


def begun_with_messages(where, *, limit_tokens=4000, lore=None, **fields):
    records = record_rows.records_of(where)
    said = [r for r in records if r.kind in ("event", "assistant")]
    prompt = a_prompt(said, limit_tokens=limit_tokens, **fields)
    draft = make_draft(prompt, event=said[-1], model="tiny")
    return turns.begin_turn(where, draft=draft, event=said[-1], lore=lore), prompt


def a_draft(where, **fields):
    """Return the draft of a prompt that answers the newest record."""
    said = [r for r in record_rows.records_of(where) if r.kind in ("event", "assistant")]
    return make_draft(a_prompt(said, **fields), event=said[-1])


def texts_in(where) -> list[str]:
    """Return the stored texts of prompts, in their order."""
    kinds = ("component_rev", "context_block")
    return [r.body for r in record_rows.records_of(where) if r.kind in kinds]


def states() -> list[str]:
    return list(models.Turn.objects.order_by("pk").values_list("state", flat=True))


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


class TestBegin:
    @pytest.mark.req("S2-30")
    def test_past_prompt_is_rebuilt_by_a_new_process(self, quay):
        heard(quay)
        _, prompt = begun(quay)
        forget_everything()
        stored = turns.last_turn("12")
        records = record_rows.records(stored.manifest.record_ids)

        rebuilt = replay_messages(stored.manifest, records)
        assert [m.wire() for m in rebuilt] == [m.wire() for m in prompt.messages]

    def test_turn_is_stored_as_it_was_begun(self, quay):
        heard(quay)
        turn, _ = begun(quay)

        assert turns.last_turn("12") == turn
        assert (turn.state, turn.number, turn.conversation) == ("open", 1, quay)
        assert record_rows.records([turn.event_record])[0].body == "Good evening, Oren."

    def test_turn_numbers_count_over_all_conversations_of_an_npc(self, quay):
        private = get_or_open_conversation("12", kind="private", partner_ref="7")
        other = get_or_open_conversation("13", kind="room", place_ref="3")
        for where in (quay, private, quay, other):
            heard(where)
        numbers = [begun(where)[0].number for where in (quay, private, quay, other)]

        assert numbers == [1, 2, 3, 1]
        assert (turns.next_number("12"), turns.next_number("13")) == (4, 2)

    def test_next_turn_number_is_cached(self, quay, no_queries):
        heard(quay)
        begun(quay)

        with no_queries():
            assert turns.next_number("12") == 2

    @pytest.mark.req("S2-01")
    def test_texts_of_the_prompt_are_committed_with_it(self, quay):
        heard(quay)
        begun(quay)

        assert texts_in(quay) == ["Stay in character.", "Oren is tired.", "The quay, at dusk."]
        assert [m.content for m in windows(quay.id).history] == ["Good evening, Oren."]

    @pytest.mark.req("S2-09")
    def test_sent_messages_are_made_from_stored_records(self, quay):
        heard(quay)
        made, prompt = begun_with_messages(quay)
        stored = {str(row.pk): row for row in models.Record.objects.all()}

        assert [stored[m.record].body for m in made.messages] == [
            m.content for m in prompt.messages
        ]
        assert messages_sha256(made.messages) == prompt.sha256

    def test_text_sent_before_is_not_stored_again(self, quay):
        heard(quay)
        turns.finish_turn(begun(quay)[0], [REPLY])
        heard(quay, "And now?")
        begun(quay)

        assert texts_in(quay) == ["Stay in character.", "Oren is tired.", "The quay, at dusk."]

    def test_only_changed_texts_are_stored(self, quay):
        heard(quay)
        begun(quay)
        begun_with_messages(quay, mood="Oren is merry.", mood_revision=4)

        assert texts_in(quay)[3:] == ["Oren is merry."]

    def test_new_process_finds_the_stored_texts(self, quay):
        heard(quay)
        begun(quay)
        forget_everything()
        begun(quay)

        assert len(texts_in(quay)) == 3

    def test_long_unused_texts_are_found_again(self, quay, monkeypatch):
        monkeypatch.setattr("evennia_ai.store.history.windows.MOST_KNOWN", 2)
        heard(quay)
        for mood in ("tired", "merry", "tired", "merry"):
            begun_with_messages(quay, mood=f"Oren is {mood}.")

        assert [text for text in texts_in(quay) if "Oren" in text] == [
            "Oren is tired.",
            "Oren is merry.",
        ]

    @pytest.mark.req("S2-15")
    def test_facts_of_earlier_turns_are_not_cached(self, quay):
        heard(quay)
        for place in ("quay", "mill"):
            begun_with_messages(quay, block=f"The {place}.")
        kept = windows(quay.id).texts

        blocks = [text.body for key, text in kept.items() if key.kind == "context_block"]
        assert blocks == ["The mill."]
        assert len(kept) == 3

    def test_another_conversation_has_its_own_texts(self, quay):
        private = get_or_open_conversation("12", kind="private", partner_ref="7")
        for where in (quay, private):
            heard(where)
            begun(where)

        assert texts_in(private) == texts_in(quay)

    def test_texts_are_stored_again_after_a_turn_was_rolled_back(self, quay):
        heard(quay)
        with transaction.atomic():
            begun(quay)
            transaction.set_rollback(True)
        made, prompt = begun_with_messages(quay)

        assert len(texts_in(quay)) == 3
        assert messages_sha256(made.messages) == prompt.sha256

    def test_turn_with_caches_reads_nothing_and_writes_twice(self, quay):
        heard(quay)
        begun(quay)
        heard(quay, "And now?")
        draft = a_draft(quay, block="The quay, at night.")
        with CaptureQueriesContext(connection) as made:
            turns.begin_turn(quay, draft=draft)
        statements = [q["sql"].split()[0] for q in made.captured_queries]

        assert statements == ["SAVEPOINT", "INSERT", "INSERT", "RELEASE"]

    def test_end_of_a_turn_takes_three_statements(self, quay):
        heard(quay)
        turn, _ = begun(quay)
        call = NewCall(npc_ref="12", role="speaker", started_at=1.0, seconds=2.0)
        with CaptureQueriesContext(connection) as made:
            turns.finish_turn(turn, [REPLY], call=call)
        statements = [q["sql"].split()[0] for q in made.captured_queries]

        assert statements == [
            "SAVEPOINT",
            "UPDATE",
            "INSERT",
            "INSERT",
            "RELEASE",
        ]

    def test_begun_turn_equals_the_stored_one(self, quay):
        heard(quay)
        turn, _ = begun(quay)

        assert turns.last_turn("12") == turn

    @pytest.mark.req("S2-01", "S2-09", "S2-16")
    def test_prompt_that_differs_from_its_records_is_refused(self, quay):
        heard(quay)
        draft = a_draft(quay)
        *kept, last = draft.composed
        forged = replace(
            draft, composed=(*kept, replace(last, content="Good morning, Oren.", memo=Memo()))
        )

        with pytest.raises(StoreError, match="differs from the record"):
            turns.begin_turn(quay, draft=forged)
        assert states() == []
        assert texts_in(quay) == []

    @pytest.mark.req("S2-27")
    def test_refused_commit_writes_neither_turn_nor_texts(self, quay, monkeypatch):
        heard(quay)

        def refuse(*_, **__):
            raise DatabaseError("disk full")

        with monkeypatch.context() as broken:
            broken.setattr(turns, "_insert", refuse)
            with pytest.raises(StoreError, match="disk full"):
                begun(quay)

        assert states() == []
        assert len(record_rows.records_of(quay)) == 1
        assert turns.next_number("12") == 1
        assert begun(quay)[0].number == 1

    @pytest.mark.req("S2-31")
    def test_two_processes_cannot_begin_the_same_turn(self, quay, monkeypatch):
        heard(quay)
        begun(quay)

        with monkeypatch.context() as patch:
            give(turns.next_number, 1, patch=patch)
            with pytest.raises(HistoryConflictError):
                begun(quay)
        assert begun(quay)[0].number == 2

    def test_start_of_the_history_in_a_turn_is_stored_and_loaded_again(self, quay):
        for number in range(20):
            heard(quay, f"Line {number}.")
            append_records(quay, [REPLY])
        heard(quay)
        _, prompt = begun(quay, limit_tokens=200)

        assert windows(quay.id).cut == prompt.cut > 0
        forget_everything()
        assert windows(quay.id).cut == prompt.cut


class TestPruning:
    """A prompt selects a part of the history. The records stay unchanged."""

    @pytest.fixture
    def long_talk(self, quay):
        for number in range(20):
            heard(quay, f"Line {number}.")
            append_records(quay, [REPLY])
        heard(quay)
        return quay

    def shown(self, where, *, limit_tokens: int) -> Prompt:
        """Return the prompt that would be sent now, with the stored cut."""
        return compose(
            Inputs(
                components=ComponentSet([]),
                rules=ComposeRules(budget=BudgetRules(limit_tokens=limit_tokens)),
                history=windows(where.id).history,
                cut=windows(where.id).cut,
            )
        )

    @pytest.mark.req("S2-19")
    def test_smaller_budget_cuts_the_prompt_and_keeps_the_records(self, long_talk):
        before = record_rows.records_of(long_talk)
        whole, half = (self.shown(long_talk, limit_tokens=limit) for limit in (400, 200))

        assert 0 < len(half.messages) < len(whole.messages)
        assert whole.messages[-len(half.messages) :] == half.messages
        assert record_rows.records_of(long_talk) == before

    @pytest.mark.req("S2-04")
    def test_new_process_makes_the_same_prompt_from_the_same_start_of_the_history(self, long_talk):
        begun(long_talk, limit_tokens=200)
        records = record_rows.records_of(long_talk)
        warm = self.shown(long_talk, limit_tokens=4000)
        forget_everything()
        cold = self.shown(long_talk, limit_tokens=4000)

        assert cold.cut == warm.cut > 0
        assert [m.wire() for m in cold.messages] == [m.wire() for m in warm.messages]
        assert record_rows.records_of(long_talk) == records


class TestFinish:
    def test_reply_and_end_are_committed_together(self, quay):
        heard(quay)
        turn, _ = begun(quay)
        (record,) = turns.finish_turn(turn, [REPLY], outcome="answered")
        forget_everything()
        stored = turns.get_turn("12", 1)

        assert (stored.state, stored.outcome) == ("done", "answered")
        assert stored.ended_at >= stored.created_at
        assert record_rows.records([record.id])[0].body == "Evening."
        assert [m.content for m in windows(quay.id).history] == ["Good evening, Oren.", "Evening."]

    def test_end_of_a_turn_is_a_record(self, quay):
        heard(quay)
        turns.finish_turn(begun(quay)[0], [REPLY])
        end = record_rows.records_of(quay)[-1]

        assert (end.kind, end.body) == (RecordKind.RUN_END, "answered")
        assert end.meta == {"turn": 1, "state": "done", "seal": seal_of_turn(1)}
        assert find_broken(record_rows.records_of(quay)) is None

    @pytest.mark.req("S2-31")
    def test_late_reply_is_not_written(self, quay):
        heard(quay)
        turn, _ = begun(quay)
        turns.fail_turn(turn, "timeout")

        with pytest.raises(TurnClosedError, match="turn 1 of NPC 12 has ended already"):
            turns.finish_turn(turn, [REPLY])
        assert "Evening." not in [m.content for m in windows(quay.id).history]
        assert states() == ["failed"]

    def test_refused_commit_leaves_the_turn_open(self, quay, monkeypatch):
        heard(quay)
        turn, _ = begun(quay)

        def refuse(*_, **__):
            raise DatabaseError("disk full")

        with monkeypatch.context() as broken:
            broken.setattr(Insert, "__call__", refuse)
            with pytest.raises(StoreError):
                turns.finish_turn(turn, [REPLY])

        assert states() == ["open"]
        turns.finish_turn(turn, [REPLY])
        assert states() == ["done"]


class TestFail:
    def test_words_said_instead_of_a_reply_are_in_the_history(self, quay):
        heard(quay)
        turn, _ = begun(quay)
        turns.fail_turn(turn, "timeout after 60 s", new=[REPLY])

        assert turns.last_turn("12").outcome == "timeout after 60 s"
        assert [m.content for m in windows(quay.id).history][-1] == "Evening."


class TestInterrupted:
    def test_open_turns_are_interrupted_at_the_next_start(self, quay):
        heard(quay)
        turns.finish_turn(begun(quay)[0], [REPLY])
        heard(quay)
        begun(quay)
        forget_everything()

        assert turns.close_interrupted() == 1
        assert states() == ["done", "interrupted"]
        assert turns.close_interrupted() == 0

    def test_interrupted_turn_leaves_a_record_and_no_message(self, quay):
        heard(quay)
        begun(quay)
        turns.close_interrupted()
        end = record_rows.records_of(quay)[-1]

        meta = {"turn": 1, "state": "interrupted", "seal": seal_of_turn(1)}
        assert (end.kind, end.meta) == (RecordKind.RUN_END, meta)
        assert [m.content for m in windows(quay.id).history] == ["Good evening, Oren."]

    @pytest.mark.req("S2-29")
    def test_interrupted_turn_cannot_end_again(self, quay):
        heard(quay)
        turn, _ = begun(quay)
        turns.close_interrupted()

        with pytest.raises(TurnClosedError):
            turns.finish_turn(turn, [REPLY])


class TestRead:
    def test_npc_without_turns_has_no_last_turn(self):
        assert turns.last_turn("12") is None

    def test_unknown_turn_is_an_error(self):
        with pytest.raises(NotStoredError, match="there is no turn of NPC 12 7"):
            turns.get_turn("12", 7)
