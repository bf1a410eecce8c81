"""Which of several NPCs answers a line, when, and which reasons builders can read."""

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME, trusted
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.turn.ending import Commits
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.quotas import Quota, Quotas


class Slow:
    """A model that replies when the test says so, and keeps its requests."""

    name, offline = "slow", False

    def __init__(self):
        self.requests = []
        self.pending = []

    def complete(self, request, *, listener=None):
        self.requests.append(request)
        self.pending.append(Deferred())
        return self.pending[-1]

    def reply(self, text, index=0):
        self.pending[index].callback(ChatReply(text=text, model=self.name))

    def close(self):
        pass


@pytest.fixture
def brida(stage):
    """Return a second NPC in the room."""
    return stage.make("Brida", "evennia_ai.typeclasses.AINPC")


@pytest.fixture
def slow(stage):
    model = Slow()
    stage.install(model)
    return model


def own_name(request):
    return f"{request.speaker} here."


def spoken(stage):
    """Return what NPCs said aloud, in order."""
    return [line for line in stage.screen_of(stage.ben) if "here." in line]


def newest(npc):
    return npc.ai.attention.last_verdicts[-1]


def why(npc, text):
    """Return the decision about this line, with its reason."""
    return next(it.why for it in npc.ai.attention.last_verdicts if it.text == text)


class TestTurnTaking:
    def test_named_npcs_answer_one_after_the_other_in_the_order_of_their_names(
        self, stage, brida, slow
    ):
        stage.says(stage.anna, "Brida and Oren, who rows tonight?")
        assert [request.speaker for request in slow.requests] == ["Brida"]
        slow.reply("I row, here.")
        stage.passes()
        assert [request.speaker for request in slow.requests] == ["Brida", "Oren"]
        shown = [message.content for message in slow.requests[1].messages]
        assert "I row, here." in shown[-2] or "I row, here." in shown[-3]
        assert shown[-1].endswith("Brida and Oren, who rows tonight?")

    def test_next_named_npc_answers_after_a_while_when_the_first_one_does_not(
        self, stage, brida, slow
    ):
        stage.says(stage.anna, "Brida and Oren, who rows tonight?")
        stage.passes(31)
        assert [request.speaker for request in slow.requests] == ["Brida", "Oren"]

    def test_npc_addressed_last_answers_when_two_are_in_conversation(self, stage, brida):
        stage.talks_with(own_name)
        stage.says(stage.anna, "Oren?")
        stage.passes(1)
        stage.says(stage.anna, "Brida?")
        stage.passes(1)
        stage.says(stage.anna, "And when?")
        assert spoken(stage)[2:] == ['Brida says, "Brida here."']
        assert why(stage.npc, "And when?") == "somebody else answers"

    def test_only_one_npc_answers_when_several_answer_everybody(self, stage, brida):
        stage.talks_with(own_name)
        for npc in (stage.npc, brida):
            change_settings(npc, mode="always", by=THE_GAME)
        for number in range(5):
            stage.says(stage.anna, f"Fine weather, number {number}.")
            stage.passes(100)
        assert len(spoken(stage)) == 5

    def test_only_one_npc_answers_a_greeting_to_all(self, stage, brida):
        stage.talks_with(own_name)
        stage.ben.location = None
        stage.says(stage.anna, "Good evening, all.")
        stage.passes(100)
        said = [line for line in stage.screen_of(stage.anna) if line.endswith('here."')]
        assert len(said) == 1

    def test_npc_does_not_answer_a_greeting_when_other_people_are_present(self, stage, brida):
        stage.talks_with(own_name)
        stage.says(stage.anna, "Good evening, all.")
        stage.passes(100)
        assert spoken(stage) == []

    def test_npc_does_not_answer_what_is_said_to_a_player(self, stage):
        stage.talks_with(own_name)
        change_settings(stage.npc, mode="always", by=THE_GAME)
        stage.says(stage.anna, "Ben, are you well?")
        assert spoken(stage) == []
        assert newest(stage.npc).why == "somebody else is named"

    def test_two_equal_utterances_at_the_same_moment_are_both_answered(self, stage, brida):
        stage.talks_with(own_name)
        for npc in (stage.npc, brida):
            change_settings(npc, mode="always", by=THE_GAME)
        stage.anna.at_say("Good morning.")
        stage.ben.at_say("Good evening.")
        stage.passes()
        assert len(spoken(stage)) == 2


class TestChains:
    def test_npcs_stop_talking_to_each_other_when_no_person_joins(self, stage, brida):
        stage.talks_with(
            lambda request: "Oren, and here." if request.speaker == "Brida" else "Brida, here.",
            delay_seconds=2.0,
            hop_limit=100,
            hop_seconds=30.0,
        )
        stage.says(stage.anna, "Oren?")
        for _ in range(60):
            stage.passes(2)
        said = len(spoken(stage))
        assert 10 < said < 20
        assert stage.clock.getDelayedCalls() == []
        stage.says(stage.anna, "Oren, go on.")
        stage.passes(3)
        assert len(spoken(stage)) > said

    def test_npc_uses_its_own_hop_limit(self, stage, brida):
        stage.talks_with(
            lambda request: "Oren, and here." if request.speaker == "Brida" else "Brida, here."
        )
        change_settings(stage.npc, hop_limit=0, by=THE_GAME)
        stage.says(stage.anna, "Brida?")
        stage.passes(5)
        assert len(spoken(stage)) == 1


class TestModes:
    def test_npc_that_answers_only_whispers_says_nothing_aloud(self, stage):
        stage.talks_with("psst.")
        change_settings(stage.npc, mode="whisper_only", by=THE_GAME)
        stage.says(stage.anna, "Oren?")
        stage.whispers(stage.anna, "Oren?")
        assert [line for line in stage.screen_of(stage.ben) if "Oren says" in line] == []
        assert stage.screen_of(stage.anna)[-1] == 'Oren whispers to you, "psst."'

    def test_npc_that_answers_everybody_needs_no_name(self, stage):
        stage.talks_with(own_name)
        change_settings(stage.npc, mode="always", by=THE_GAME)
        stage.says(stage.anna, "Fine weather.")
        assert spoken(stage) == ['Oren says, "Oren here."']

    def test_npc_uses_its_own_engagement_seconds(self, stage):
        stage.talks_with(own_name)
        change_settings(stage.npc, engagement_seconds=5.0, by=THE_GAME)
        stage.says(stage.anna, "Oren?")
        stage.passes(6)
        stage.says(stage.anna, "And?")
        assert len(spoken(stage)) == 1

    def test_npc_uses_its_own_cooldown_between_turns(self, stage):
        stage.talks_with(own_name)
        change_settings(stage.npc, cooldown_seconds=9.0, by=THE_GAME)
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        stage.passes(8)
        assert len(spoken(stage)) == 1
        stage.passes(2)
        assert len(spoken(stage)) == 2


class TestLeaving:
    def test_pending_answer_is_dropped_when_the_speaker_leaves(self, stage, slow):
        stage.says(stage.ben, "Oren, one?")
        stage.says(stage.anna, "Oren, two?")
        stage.says(stage.ben, "Oren, three?")
        stage.npc.ai.speaker_left(str(stage.anna.id))
        slow.reply("Aye.")
        stage.passes()
        assert [request.question for request in slow.requests] == ["Oren, one?", "Oren, three?"]
        assert not stage.npc.ai.waiting_records()

    def test_running_answer_is_said_when_the_speaker_leaves_and_others_heard_the_question(
        self, stage, slow
    ):
        stage.says(stage.anna, "Oren, is it late?")
        stage.npc.ai.speaker_left(str(stage.anna.id))
        slow.reply("It is, here.")
        stage.passes()
        assert spoken(stage) == ['Oren says, "It is, here."']

    def test_whispered_answer_and_its_model_call_are_given_up_when_the_speaker_leaves(
        self, stage, slow
    ):
        stage.whispers(stage.anna, "is it late?")
        stage.npc.ai.speaker_left(str(stage.anna.id))
        stage.passes()
        assert slow.pending[0].called
        assert not stage.npc.ai.is_busy

    def test_moved_npc_answers_nobody_in_its_old_room(self, stage, slow):
        stage.says(stage.anna, "Oren, one?")
        stage.says(stage.anna, "Oren, two?")
        stage.npc.ai.gone()
        stage.passes(1)
        assert len(slow.requests) == 1
        assert slow.pending[0].called
        assert not stage.npc.ai.is_busy

    def test_conversation_has_ended_when_a_speaker_left_and_comes_back(self, stage):
        stage.talks_with(own_name)
        stage.says(stage.anna, "Oren?")
        stage.npc.ai.speaker_left(str(stage.anna.id))
        stage.says(stage.anna, "And?")
        assert len(spoken(stage)) == 1


class TestLimits:
    def limits(self, **player):
        return Quotas(player=Quota(**player), npc=Quota(), game=Quota())

    def test_npc_says_once_that_a_limit_is_reached_and_remembers_the_lines(self, stage):
        stage.talks_with(own_name, limits=self.limits(calls_per_minute=1), limit_line="Enough.")
        for number in range(3):
            stage.says(stage.anna, f"Oren, {number}?")
        assert stage.screen_of(stage.anna)[1::2][:2] == [
            'Oren says, "Oren here."',
            'Oren says, "Enough."',
        ]
        assert len(stage.model.requests) == 1
        said = [body for _, name, body in stage.records() if name == "Anna"]
        assert said == ["Oren, 0?", "Oren, 1?", "Oren, 2?"]
        assert "calls per minute" in newest(stage.npc).why

    def test_other_player_is_answered_while_one_player_is_over_the_limit(self, stage):
        stage.talks_with(own_name, limits=self.limits(calls_per_minute=1))
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        stage.says(stage.ben, "Oren?")
        assert len(spoken(stage)) == 2

    def test_limit_line_is_committed_before_it_is_said(self, stage):
        stage.talks_with(own_name, limits=self.limits(calls_per_minute=1), limit_line="Enough.")
        stage.says(stage.anna, "Oren?")
        stage.says(stage.anna, "Oren?")
        assert ("fallback", "", "Enough.") in stage.records()


class TestHalts:
    def test_paused_npc_is_silent_and_its_decision_names_the_pause(self, stage):
        from evennia_ai.npc.mind.emergency import pause, resume

        stage.talks_with(own_name)
        pause(stage.npc, by=trusted("Mira"), reason="a scene")
        stage.says(stage.anna, "Oren?")
        assert spoken(stage) == []
        assert newest(stage.npc).why == "paused by Mira: a scene"
        resume(stage.npc, by=trusted("Mira"))
        stage.says(stage.anna, "Oren?")
        assert len(spoken(stage)) == 1


class TestOverflow:
    def test_too_many_lines_are_counted_and_recorded_once(self, stage, slow):
        stage.install(slow, queue_limit=2)
        for number in range(6):
            stage.says(stage.player(f"Guest{number}"), f"Oren, {number}?")
        notes = [body for kind, _, body in stage.records() if kind == "event"]
        assert len(notes) == 1
        assert stage.npc.ai.attention.overflows == 3
        assert newest(stage.npc).why == "too much waits already"


class TestThinking:
    def test_thinking_gesture_is_shown_once_when_an_answer_takes_long(self, stage, slow):
        stage.install(slow, thinking_seconds=4.0)
        stage.says(stage.anna, "Oren?")
        stage.passes(3.9)
        assert stage.screen_of(stage.ben)[-1] == 'Anna says, "Oren?"'
        stage.passes(30)
        assert stage.screen_of(stage.ben)[1:] == ["Oren thinks it over."]
        slow.reply("Aye.")
        stage.passes(30)
        assert stage.screen_of(stage.ben)[2:] == ['Oren says, "Aye."']

    def test_thinking_gesture_is_in_no_history(self, stage, brida, slow):
        stage.install(slow, thinking_seconds=4.0)
        stage.says(stage.anna, "Oren?")
        stage.passes(5)
        told = [*stage.records(), *records_of(brida)]
        assert "Oren thinks it over." in stage.screen_of(stage.ben)
        assert not [body for _, _, body in told if "thinks" in body]

    def test_npc_uses_its_own_thinking_gesture(self, stage, slow):
        stage.install(slow, thinking_seconds=4.0)
        change_settings(stage.npc, thinking="scratches |rhis head.", by=THE_GAME)
        stage.says(stage.anna, "Oren?")
        stage.passes(5)
        assert stage.screen_of(stage.ben)[-1] == "Oren scratches |rhis head."

    def test_thinking_gesture_is_seen_only_by_the_whisperer(self, stage, slow):
        stage.install(slow, thinking_seconds=4.0)
        stage.whispers(stage.anna, "Oren?")
        stage.passes(5)
        assert stage.screen_of(stage.anna)[-1] == "Oren thinks it over."
        assert stage.screen_of(stage.ben) == []

    def test_thinking_gesture_is_shown_while_an_idle_npc_waits_for_a_full_model(
        self, stage, brida, slow
    ):
        stage.install(slow, thinking_seconds=4.0, max_concurrent_turns=1)
        stage.says(stage.anna, "Brida?")
        stage.passes(2)
        stage.says(stage.anna, "Oren?")
        stage.passes(4)
        shown = [line for line in stage.screen_of(stage.ben) if "thinks" in line]
        assert (brida.key, shown) == ("Brida", ["Brida thinks it over.", "Oren thinks it over."])
        slow.reply("Aye.")
        stage.passes(30)
        assert stage.screen_of(stage.ben).count("Oren thinks it over.") == 1

    def test_thinking_gesture_is_not_shown_when_the_reply_has_come_but_is_not_committed(
        self, stage, slow, monkeypatch
    ):
        stage.install(slow, thinking_seconds=4.0)
        stage.says(stage.anna, "Oren?")
        stage.passes(3)
        committed = Deferred()
        monkeypatch.setattr(Commits, "finish", lambda *_, **__: committed)
        slow.reply("Aye.")
        stage.passes(5)
        committed.callback(None)
        stage.passes()
        assert stage.screen_of(stage.ben)[1:] == ['Oren says, "Aye."']

    def test_thinking_gesture_is_not_shown_for_a_quick_answer_or_with_0_seconds(self, stage, slow):
        stage.install(slow, thinking_seconds=0.0)
        stage.says(stage.anna, "Oren?")
        stage.passes(99)
        assert len(stage.screen_of(stage.ben)) == 1


def records_of(npc):
    from evennia_ai.store.history.conversations import conversations_of
    from evennia_ai.store.history.record_rows import records_of

    return [
        (record.kind.value, record.name, record.body)
        for known in conversations_of(npc.ai.ref)
        for record in records_of(known)
    ]
