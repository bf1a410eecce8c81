"""What was said just before the server stopped is answered after its start."""

import time

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.npc.recording import unanswered
from evennia_ai.npc.recording.unanswered import FRESH_SECONDS, TakenUp
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import turns
from evennia_ai.store.history.conversations import conversations_of
from tests.npc.screens import WebSocketClient, session_at


@pytest.fixture
def stopped(stage):
    """What is said now nobody answers, as if the server stopped right then."""
    stage.talks_with("Aye.", "Aye again.")
    return stage


def said(stage, speaker, text, **options):
    """It is said, and then all that was only in memory is gone."""
    speaker.at_say(text, msg_self=True, **options)
    stops(stage)


def stops(stage):
    recorder = getattr(stage.running.runtime(), "recorder", None)
    if recorder is not None:
        recorder.flush()
    stage.running.runtime().close()
    for npc in (stage.npc,):
        npc.__dict__.pop("ai", None)
    forget_everything()
    stage.talks_with("Aye.", "Aye again.", "And again.")


def starts(stage, after_seconds=1.0):
    found = unanswered.take_up(unanswered.look_back(started_at=time.time() + after_seconds))
    stage.passes()
    return found


def test_who_was_named_answers_after_the_start(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert starts(stopped) == TakenUp(answered=1)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren says, "Aye."'
    assert stopped.model.requests[0].question == "Oren, is it late?"


def test_a_conversation_begun_at_the_web_client_is_one_after_the_start(stopped):
    stopped.anna.sessions.all = lambda: [session_at(WebSocketClient)]
    said(stopped, stopped.anna, "Oren, is it late?")
    starts(stopped)
    assert [one.origin for one in conversations_of(stopped.npc.ai.ref)] == ["websocket"]


def test_a_whisper_is_answered_in_private(stopped):
    said(stopped, stopped.anna, "is it late?", receivers=[stopped.npc], whisper=True)
    assert starts(stopped) == TakenUp(answered=1)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren whispers to you, "Aye."'
    assert stopped.screen_of(stopped.ben) == []


def test_what_is_older_than_a_minute_is_dropped_and_that_is_logged(stopped, logged):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert starts(stopped, FRESH_SECONDS + 1) == TakenUp(dropped=1)
    assert "0 answered now, 1 too old to answer" in logged[-1]
    assert stopped.model.requests == []


def test_where_nobody_waits_any_more_nothing_is_answered(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    stopped.anna.location = stopped.ben.location = None
    assert starts(stopped) == TakenUp(dropped=1)


def test_what_was_meant_for_nobody_is_left_alone(stopped, logged):
    said(stopped, stopped.anna, "Fine weather.")
    assert starts(stopped) == TakenUp()
    assert logged == []


def test_what_was_answered_is_not_answered_again(stopped):
    stopped.says(stopped.anna, "Oren?")
    stops(stopped)
    assert starts(stopped) == TakenUp()


class Silent:
    """A model that has not answered when the server stops."""

    name = "silent"
    offline = False

    def __init__(self):
        self.asked = []

    def complete(self, request, *, listener=None):
        self.asked.append(Deferred())
        return self.asked[-1]

    def close(self):
        for answer in self.asked:
            answer.cancel()


@pytest.fixture
def asked(stage):
    """The stage, where the model of Oren thinks about what Anna said and the server stops."""
    stage.install(Silent())
    stage.says(stage.anna, "Oren, is it late?")
    return stage


def test_a_question_the_model_thought_about_is_asked_again(asked):
    stops(asked)
    assert turns.last_turn(asked.npc.ai.ref).state == "interrupted"
    assert starts(asked) == TakenUp(answered=1)
    assert asked.screen_of(asked.anna)[-1] == 'Oren says, "Aye."'


@pytest.mark.parametrize("kind", [RecordKind.SPOKEN, RecordKind.TOOL_CALL])
def test_of_which_something_was_said_or_done_it_is_not(asked, kind):
    under_way = turns.last_turn(asked.npc.ai.ref)
    turns.add_records(under_way, [NewRecord(kind=kind, role="assistant", body="The tide.")])
    stops(asked)
    assert starts(asked) == TakenUp()


def test_a_turn_that_was_cut_short_twice_is_taken_up_once(asked):
    stops(asked)
    asked.install(Silent())
    unanswered.take_up(unanswered.look_back(started_at=time.time() + 1))
    asked.passes()
    stops(asked)
    assert starts(asked) == TakenUp(answered=1)


def test_what_is_said_after_the_start_is_not_taken_up(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert unanswered.take_up(unanswered.look_back(started_at=time.time() - 1)) == TakenUp()


def test_an_npc_that_is_no_more_is_passed_over(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    stopped.npc.delete()
    assert starts(stopped) == TakenUp()


def test_the_start_of_the_server_takes_it_up_when_players_are_there_again(stopped, logged):
    from evennia_ai.npc import service

    said(stopped, stopped.anna, "Oren, is it late?")
    service.at_server_start()
    stopped.passes(2)
    assert len(stopped.screen_of(stopped.anna)) == 1
    stopped.passes(2)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren says, "Aye."'
    service.at_server_stop()
