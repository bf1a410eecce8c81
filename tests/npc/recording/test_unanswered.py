"""Words said to NPCs shortly before the server stopped are answered after its start."""

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
    """A stage on which `said` stops the server before the NPC can answer."""
    stage.talks_with("Aye.", "Aye again.")
    return stage


def said(stage, speaker, text, **options):
    """Say a line, then stop the server and drop everything that was only in memory."""
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


def test_named_npc_answers_after_the_start(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert starts(stopped) == TakenUp(answered=1)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren says, "Aye."'
    assert stopped.model.requests[0].question == "Oren, is it late?"


def test_conversation_keeps_its_client_after_the_start(stopped):
    stopped.anna.sessions.all = lambda: [session_at(WebSocketClient)]
    said(stopped, stopped.anna, "Oren, is it late?")
    starts(stopped)
    assert [one.origin for one in conversations_of(stopped.npc.ai.ref)] == ["websocket"]


def test_whisper_is_answered_in_private_after_the_start(stopped):
    said(stopped, stopped.anna, "is it late?", receivers=[stopped.npc], whisper=True)
    assert starts(stopped) == TakenUp(answered=1)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren whispers to you, "Aye."'
    assert stopped.screen_of(stopped.ben) == []


def test_words_older_than_a_minute_are_dropped_and_logged(stopped, logged):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert starts(stopped, FRESH_SECONDS + 1) == TakenUp(dropped=1)
    assert "0 answered now, 1 dropped because they are too old" in logged[-1]
    assert stopped.model.requests == []


def test_words_are_dropped_when_no_player_is_present_after_the_start(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    stopped.anna.location = stopped.ben.location = None
    assert starts(stopped) == TakenUp(dropped=1)


def test_words_to_nobody_in_particular_are_not_taken_up(stopped, logged):
    said(stopped, stopped.anna, "Fine weather.")
    assert starts(stopped) == TakenUp()
    assert logged == []


def test_answered_words_are_not_taken_up(stopped):
    stopped.says(stopped.anna, "Oren?")
    stops(stopped)
    assert starts(stopped) == TakenUp()


class Silent:
    """A model that never replies before the server stops."""

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
    """The stage after Anna asked Oren, whose model has not replied yet."""
    stage.install(Silent())
    stage.says(stage.anna, "Oren, is it late?")
    return stage


def test_interrupted_turn_is_repeated_after_the_start(asked):
    stops(asked)
    assert turns.last_turn(asked.npc.ai.ref).state == "interrupted"
    assert starts(asked) == TakenUp(answered=1)
    assert asked.screen_of(asked.anna)[-1] == 'Oren says, "Aye."'


@pytest.mark.parametrize("kind", [RecordKind.SPOKEN, RecordKind.TOOL_CALL])
def test_interrupted_turn_is_not_repeated_when_the_npc_already_spoke_or_acted(asked, kind):
    under_way = turns.last_turn(asked.npc.ai.ref)
    turns.add_records(under_way, [NewRecord(kind=kind, role="assistant", body="The tide.")])
    stops(asked)
    assert starts(asked) == TakenUp()


def test_turn_interrupted_twice_is_repeated_once(asked):
    stops(asked)
    asked.install(Silent())
    unanswered.take_up(unanswered.look_back(started_at=time.time() + 1))
    asked.passes()
    stops(asked)
    assert starts(asked) == TakenUp(answered=1)


def test_words_said_after_the_start_are_not_taken_up(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    assert unanswered.take_up(unanswered.look_back(started_at=time.time() - 1)) == TakenUp()


def test_words_to_a_deleted_npc_are_not_taken_up(stopped):
    said(stopped, stopped.anna, "Oren, is it late?")
    stopped.npc.delete()
    assert starts(stopped) == TakenUp()


def test_server_start_takes_up_words_after_players_have_reconnected(stopped, logged):
    from evennia_ai.npc import service

    said(stopped, stopped.anna, "Oren, is it late?")
    service.at_server_start()
    stopped.passes(2)
    assert len(stopped.screen_of(stopped.anna)) == 1
    stopped.passes(2)
    assert stopped.screen_of(stopped.anna)[-1] == 'Oren says, "Aye."'
    service.at_server_stop()
