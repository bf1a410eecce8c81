"""`ai/reset`, `ai/undo`, `ai/retry` and `ai/correct`: what counts, and what the command says."""

import pytest
from django.db import OperationalError
from twisted.internet.defer import fail

from evennia_ai.commands.ai.status import status_lines
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.compaction.summaries import summary_record
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.npc import npc_settings
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import control, conversations, record_rows
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from tests.commands.stage import one_line

BAD_INPUT = {
    "ai/reset": "Usage: ai/reset <npc>",
    "ai/reset oren = 2": "takes no '='",
    "ai/reset nobody": "no NPC called 'nobody'",
    "ai/reset oren/99": "has no conversation 99",
    "ai/undo": "Usage: ai/undo <npc>",
    "ai/undo oren = 0": "must be a whole number from 1 on",
    "ai/undo oren = all": "must be a whole number from 1 on",
    "ai/undo oren = 51": "At most 50 exchanges",
    "ai/retry": "Usage: ai/retry <npc>",
    f"ai/retry oren = {'x' * 1001}": "at most 1000",
    "ai/correct oren": "Usage: ai/correct <npc>/#<number> = <text>",
    "ai/correct oren = No.": "Usage: ai/correct <npc>/#<number> = <text>",
    "ai/correct oren/#999999 = No.": "has no record #999999",
}


@pytest.fixture
def talk(stage):
    """Let Pim and Oren speak twice. Three more answers are ready."""
    answers = [f"Answer {number}." for number in range(1, 6)]
    with stage.model(*answers) as model:
        for number in (1, 2):
            stage.plays(f"say Oren, question {number}?")
            stage.waited()
        yield model


def room_of(stage):
    (where,) = conversations.conversations_of(stage.npc.ai.ref)
    return where


def counts(stage) -> list[str]:
    """Return what prompts show of the room, the same in memory and for a new process."""
    shown = [message.content for message in windows(room_of(stage).id).history]
    forget_everything()
    assert shown == [message.content for message in windows(room_of(stage).id).history]
    assert verify(room_of(stage)) is None
    return shown


def number_of(stage, body: str) -> str:
    """Return the number, such as #4, of the record that says this."""
    return next(f"#{r.id}" for r in record_rows.records_of(room_of(stage)) if r.body == body)


BOTH = ["Oren, question 1?", "Answer 1.", "Oren, question 2?", "Answer 2."]


def test_bad_input_gets_one_clear_line(stage, talk):
    for typed, problem in BAD_INPUT.items():
        assert problem in one_line(stage.builds(typed)), typed
        assert counts(stage) == BOTH, typed


@pytest.mark.parametrize(
    "line", ["ai/reset oren", "ai/undo oren", "ai/retry oren", "ai/correct oren/#1 = No."]
)
class TestRefusals:
    def test_control_is_refused_without_records(self, stage, line):
        with stage.model():
            told = one_line(stage.builds(line))
        assert "Nothing is recorded" in told or "has no record" in told

    def test_control_is_refused_while_the_npc_answers(self, stage, talk, line, monkeypatch):
        monkeypatch.setattr(runtime().scheduler, "in_flight", lambda _: True)
        line = line.replace("#1 ", f"{number_of(stage, 'Answer 1.')} ")

        assert "answering just now; try again" in one_line(stage.builds(line))

    def test_control_is_refused_to_players(self, stage, talk, line):
        stage.plays(line)

        assert counts(stage) == BOTH


class TestReset:
    def test_reset_ends_what_counts(self, stage, talk):
        told = one_line(stage.builds("ai/reset oren"))

        assert "starts over in conversation" in told
        assert "What Oren learnt stays" in told
        assert counts(stage) == []

    def test_reset_leaves_the_next_prompt_without_earlier_words(self, stage, talk):
        stage.builds("ai/reset oren")
        stage.plays("say Oren, and now?")
        stage.waited()

        assert counts(stage) == ["Oren, and now?", "Answer 3."]
        sent = "".join(message.content for message in talk.requests[-1].messages)
        assert "question 1" not in sent
        assert "builder restarted" in " ".join(stage.builds("ai/cache oren").split())

    def test_reset_keeps_the_history(self, stage, talk):
        stage.builds("ai/reset oren")
        told = stage.builds("ai/history oren")

        assert "question 1" in told
        assert "(before it started over)" in told
        assert "nothing before counts, by Mara" in told

    def test_reset_twice_says_that_nothing_counts_already(self, stage, talk):
        stage.builds("ai/reset oren")

        assert "Nothing in this conversation counts any more" in one_line(
            stage.builds("ai/reset oren")
        )

    def test_reset_by_number_applies_to_a_whispered_conversation(self, stage, talk):
        stage.plays("whisper oren = A secret.")
        stage.waited()
        whispered = conversations.conversations_of(stage.npc.ai.ref)[-1]
        told = one_line(stage.builds(f"ai/reset oren/{whispered.id}"))

        assert "WHISPERED" in told
        assert len(windows(whispered.id).history) == 0


class TestUndo:
    def test_undo_ends_the_newest_exchange(self, stage, talk):
        told = one_line(stage.builds("ai/undo oren"))

        assert told.startswith("1 exchange no longer counts: 2 records, #")
        assert counts(stage) == BOTH[:2]
        assert stage.builds("ai/history oren").count("(taken back)") == 2

    def test_undo_goes_back_until_no_exchange_is_left(self, stage, talk):
        stage.builds("ai/undo oren", "ai/undo oren")
        assert counts(stage) == []

        assert "no exchange left" in one_line(stage.builds("ai/undo oren"))

    def test_undo_of_too_many_takes_all_back(self, stage, talk):
        told = one_line(stage.builds("ai/undo oren = 5"))

        assert "2 exchanges no longer count" in told
        assert "no more than 2" in told


class TestRetry:
    def test_retry_answers_the_last_event_aloud(self, stage, talk):
        heard = stage.builds("ai/retry oren")
        stage.waited()

        assert "answers #" in heard
        assert counts(stage) == [*BOTH[:3], "Answer 3."]

    def test_retry_marks_the_old_answer_in_the_history(self, stage, talk):
        old = number_of(stage, "Answer 2.")
        stage.builds("ai/retry oren")
        stage.waited()
        told = stage.builds("ai/history oren").splitlines()

        (marked,) = [line for line in told if "(answered again since)" in line]
        assert marked.startswith(f"{old} ")

    def test_retry_hint_is_only_in_its_own_prompt(self, stage, talk):
        stage.builds("ai/retry oren = Be brief.")
        stage.waited()
        assert "Be brief." in "".join(m.content for m in talk.requests[-1].messages)

        stage.plays("say Oren, and now?")
        stage.waited()
        assert "Be brief." not in "".join(m.content for m in talk.requests[-1].messages)
        assert "the hint: Be brief." in stage.builds("ai/history oren").replace("\n", " ")

    def test_retry_can_be_repeated(self, stage, talk):
        for number in (3, 4, 5):
            stage.builds("ai/retry oren")
            stage.waited()
            assert counts(stage) == [*BOTH[:3], f"Answer {number}."]

        stage.builds("ai/undo oren")
        assert counts(stage) == BOTH[:2]

    def test_retry_is_refused_while_an_event_waits(self, stage, talk):
        stage.plays("say Oren, one more?")

        assert "answering just now; try again" in one_line(stage.builds("ai/retry oren"))

    def test_retry_is_refused_if_the_npc_is_off(self, stage, talk):
        stage.builds("ai/off oren")

        assert "does not answer now: switched off" in one_line(stage.builds("ai/retry oren"))
        assert counts(stage) == BOTH

    def test_retry_is_refused_without_an_answer_that_counts(self, stage, talk):
        stage.builds("ai/reset oren")

        assert "has given no answer" in one_line(stage.builds("ai/retry oren"))

    def test_retry_is_refused_without_a_model(self, stage, talk, monkeypatch):
        monkeypatch.setattr(talk, "offline", True)

        assert "answers without a model" in one_line(stage.builds("ai/retry oren"))

    def test_retry_is_refused_if_the_speaker_is_gone(self, stage, talk):
        stage.player.delete()

        assert "gone" in one_line(stage.builds("ai/retry oren"))
        assert counts(stage) == BOTH


class TestTwoBuilders:
    """One builder's command ends while another builder's command is under way."""

    @pytest.mark.req("S2-31")
    def test_reset_wins_over_a_retry_at_the_same_time(self, stage, talk):
        stage.builds("ai/retry oren")
        control.reset_conversation(room_of(stage), by=trusted("Tom"))
        stage.waited()

        assert counts(stage) == []
        assert "Answer 3." not in [r.body for r in record_rows.records_of(room_of(stage))]

    def test_reset_drops_waiting_events(self, stage, talk):
        stage.plays("say Oren, one more?")
        control.reset_conversation(room_of(stage), by=trusted("Tom"))
        stage.waited()

        assert counts(stage) == []

    def test_second_undo_at_the_same_time_takes_what_is_left(self, stage, talk):
        control.undo_exchanges(room_of(stage), 1, by=trusted("Tom"))
        stage.builds("ai/undo oren")

        assert counts(stage) == []


class TestCorrect:
    def test_correct_replaces_the_words_in_prompts(self, stage, talk):
        number = number_of(stage, "Answer 1.")
        told = one_line(stage.builds(f"ai/correct oren/{number} = Never."))
        assert told.startswith(f"From now on Oren said in {number}: Never.")
        assert counts(stage) == [BOTH[0], "Never.", *BOTH[2:]]

        stage.plays("say Oren, and now?")
        stage.waited()
        sent = [message.content for message in talk.requests[-1].messages]
        assert any("Never." in text for text in sent)
        assert not any("Answer 1." in text for text in sent)

    def test_newest_of_two_corrections_counts(self, stage, talk):
        number = number_of(stage, "Answer 1.")
        stage.builds(f"ai/correct oren/{number} = Never.", f"ai/correct oren/{number} = Always.")

        assert counts(stage) == [BOTH[0], "Always.", *BOTH[2:]]
        assert "(corrected since)" in stage.builds("ai/history oren")

    def test_correct_replaces_words_said_by_a_tool(self, stage, talk):
        npc_settings.change_settings(stage.npc, by=trusted("Mara"), tools=("say", "pose"))
        calls = (
            ToolCall(id="x1", name="say", arguments='{"text": "At noon."}'),
            ToolCall(id="x2", name="pose", arguments='{"action": "points out to sea."}'),
        )
        answers = iter([ChatReply(text="", tool_calls=calls, model="m"), "So it is.", "Aye."])
        talk._line = lambda request: next(answers)
        stage.plays("say Oren, when does it sail?")
        stage.waited()
        (call,) = (
            r for r in record_rows.records_of(room_of(stage)) if r.kind is RecordKind.TOOL_CALL
        )

        told = one_line(stage.builds(f"ai/correct oren/#{call.id} = At dusk."))
        assert f"#{call.id}.1 (At noon.), #{call.id}.2 (points out to sea.)" in told
        told = one_line(stage.builds(f"ai/correct oren/#{call.id}.1 = At dusk."))
        assert told.startswith(f"From now on Oren said in #{call.id}: At dusk.")
        stage.builds(f"ai/correct oren/#{call.id}.2 = points at the clock.")
        told = counts(stage)
        assert 'You say: "At dusk."' in told
        assert "You did it: Oren points at the clock." in told

        stage.plays("say Oren, and now?")
        stage.waited()
        sent = str(talk.requests[-1].messages)
        assert "At dusk." in sent and "points at the clock." in sent
        assert "noon" not in sent and "out to sea" not in sent

    def test_correct_replaces_a_summary(self, stage, talk):
        where = room_of(stage)
        new = summary_record("Pim asked about herbs.", by="model", asked_by="Mara", messages=2)
        history = windows(where.id).history
        opening = conversations.begin_segment(where, new, summarised=history, first_kept=2)
        told = one_line(stage.builds(f"ai/correct oren/#{opening.id} = They spoke of herbs."))

        assert told.startswith(f"From now on summary #{opening.id} says: They spoke of herbs.")
        assert counts(stage)[0].endswith("\nThey spoke of herbs.")
        assert "compacted by a model" in " ".join(" ".join(status_lines(stage.npc)).split())

    def test_correct_refuses_words_of_others(self, stage, talk):
        number = number_of(stage, "Oren, question 1?")

        told = one_line(stage.builds(f"ai/correct oren/{number} = Never."))
        assert f"{number} has no words of the NPC" in told
        assert counts(stage) == BOTH

    def test_correction_shows_markup_literally(self, stage, talk):
        number = number_of(stage, "Answer 1.")
        told = one_line(stage.builds(f"ai/correct oren/{number} = |rRed|n {{{{user}}}} $You()"))

        assert "|rRed|n {{user}} $You()" in told
        assert counts(stage)[1] == "|rRed|n {{user}} $You()"


def test_control_record_is_in_no_prompt(stage, talk):
    stage.builds("ai/undo oren")
    stage.plays("say Oren, and now?")
    stage.waited()
    kinds = {record.kind for record in record_rows.records_of(room_of(stage))}

    assert RecordKind.CONTROL in kinds
    assert "by Mara" not in "".join(message.content for message in talk.requests[-1].messages)


@pytest.mark.parametrize(
    "typed", ["ai/undo oren", "ai/reset oren", "ai/correct oren/{0} = No.", "ai/compact oren"]
)
def test_unexpected_error_is_shown_to_the_builder(stage, talk, monkeypatch, typed):
    monkeypatch.setattr("evennia_ai.npc.mind.control._write_later", _broken)
    monkeypatch.setattr(type(runtime().compactor), "compact_room", _broken)
    line = typed.format(number_of(stage, "Answer 1."))
    told = one_line(stage.builds(line))
    assert f"'{line}' went wrong: OperationalError: the disk is gone." in told
    assert "Check whether it was done before you type it again" in told


def _broken(*_asked, **_more):
    return fail(OperationalError("the disk is gone"))
