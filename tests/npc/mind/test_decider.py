"""A cheap model decides whether an NPC answers a line that does not name it."""

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.npc.mind.decider import DECIDE_SECONDS, MOST_LINES
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.record_rows import records_of


class Models:
    """A model that answers as an NPC, and as a decider gives the answers of the test."""

    name, offline = "models", False

    def __init__(self):
        self.asked = []  # the requests for decisions
        self.replies = []
        self.decision = '{"answer": true}'

    def complete(self, request, *, listener=None):
        if not request.speaker:
            self.asked.append(request)
            return self._decided()
        self.replies.append(request)
        answer = Deferred()
        answer.callback(ChatReply(text=f"{request.speaker} here.", model=self.name))
        return answer

    def _decided(self):
        answer = Deferred()
        if isinstance(self.decision, Exception):
            answer.errback(self.decision)
        elif self.decision is not None:
            answer.callback(ChatReply(text=self.decision, model=self.name))
        return answer

    def close(self):
        pass


@pytest.fixture
def models(stage):
    made = Models()
    stage.install(made)
    change_settings(stage.npc, mode="decide", by=THE_GAME)
    return made


def spoken(stage):
    return [line for line in stage.screen_of(stage.ben) if "here." in line]


def why(npc, text):
    return next(it.why for it in npc.ai.attention.last_verdicts if it.text == text)


def test_npc_answers_when_the_decider_says_yes(stage, models):
    stage.says(stage.anna, "Is there a ferry tonight?")
    assert spoken(stage) == ['Oren says, "Oren here."']
    (asked,) = models.asked
    assert asked.messages[-2].content.endswith("Is there a ferry tonight?")
    assert asked.schema.name == "WillAnswer"


def test_npc_is_silent_when_the_decider_says_no(stage, models):
    models.decision = '{"answer": false}'
    stage.says(stage.anna, "Is there a ferry tonight?")
    assert spoken(stage) == []
    assert why(stage.npc, "Is there a ferry tonight?") == "the decider says no"


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (ModelUnavailable("models", "is away"), "the decider failed"),
        ("Certainly!", "the decider's answer cannot be read"),
        ('{"answer": "perhaps"}', "the decider's answer cannot be read"),
    ],
)
def test_npc_is_silent_with_a_known_reason_when_the_decider_gives_no_decision(
    stage, models, logged, decision, told
):
    models.decision = decision
    stage.says(stage.anna, "Is there a ferry tonight?")
    assert spoken(stage) == []
    assert why(stage.npc, "Is there a ferry tonight?").startswith(told)


def test_npc_is_silent_when_the_decider_takes_too_long(stage, models, logged):
    models.decision = None
    stage.says(stage.anna, "Is there a ferry tonight?")
    stage.passes(DECIDE_SECONDS - 0.1)
    assert stage.npc.ai.is_busy
    stage.passes(0.2)
    assert not stage.npc.ai.is_busy
    assert why(stage.npc, "Is there a ferry tonight?").startswith("the decider failed")
    stage.says(stage.anna, "Oren?")
    assert len(spoken(stage)) == 1


def test_decider_is_not_asked_when_the_rules_decide(stage, models):
    stage.says(stage.anna, "Oren?")
    stage.says(stage.anna, "And tomorrow?")
    stage.says(stage.anna, "Ben, and you?")
    stage.whispers(stage.anna, "psst")
    assert models.asked == []


def test_question_is_committed_before_the_call_and_the_decision_after_it(stage, models):
    stage.says(stage.anna, "Is there a ferry tonight?")
    (room,) = [one for one in conversations_of(stage.npc.ai.ref) if one.kind == "room"]
    records = {record.place: record for record in records_of(room)}
    (asking,) = [record for record in records.values() if record.kind.value == "invoke"]
    (event,) = [record for record in records.values() if record.kind.value == "user"]
    assert asking.meta["event"] == event.place
    prompt = [records[place].body for place in asking.meta["prompt"]]
    sent = [message.content for message in models.asked[0].messages]
    assert [said.endswith(body) for said, body in zip(sent, prompt, strict=True)] == [True] * 3
    told = [record for record in records.values() if record.meta.get("of") == "decision"][-1]
    assert (told.kind.value, told.body) == ("run_end", '{"answer": true}')
    assert told.meta["outcome"] == "answers"


def test_decider_gets_few_lines_each_with_its_speaker(stage, models):
    models.decision = '{"answer": false}'
    for number in range(20):
        stage.says((stage.anna, stage.ben)[number % 2], f"Line {number}.")
    lines = [message.content for message in models.asked[-1].messages[1:-1]]
    assert lines == [
        f"{('Anna', 'Ben')[number % 2]}: Line {number}." for number in range(20 - MOST_LINES, 20)
    ]


def test_each_npc_is_decided_once_and_the_first_yes_answers(stage, models):
    for key in ("Brida", "Ismay", "Tomas", "Ulla"):
        change_settings(stage.make(key, "evennia_ai.typeclasses.AINPC"), mode="decide", by=THE_GAME)
    stage.says(stage.anna, "Is there a ferry tonight?")
    assert len(spoken(stage)) == 1
    assert len(models.asked) == 1
    models.decision = '{"answer": false}'
    stage.passes(100)
    models.asked.clear()
    stage.says(stage.anna, "And a bridge?")
    assert len(models.asked) == 3
    assert len(spoken(stage)) == 1


def test_decider_is_not_asked_when_a_limit_is_reached(stage, models):
    none = Quotas(player=Quota(calls_per_minute=0), npc=Quota(), game=Quota())
    stage.install(models, limits=none)
    stage.says(stage.anna, "Is there a ferry tonight?")
    assert models.asked == []
    assert "calls per minute" in why(stage.npc, "Is there a ferry tonight?")


def test_speaker_who_left_during_the_decision_is_not_answered(stage, models, logged):
    models.decision = None
    stage.says(stage.anna, "Is there a ferry tonight?")
    stage.npc.ai.speaker_left(str(stage.anna.id))
    stage.passes(DECIDE_SECONDS)
    assert spoken(stage) == []
    assert why(stage.npc, "Is there a ferry tonight?") == "the speaker left"
    assert not stage.npc.ai.is_busy


def test_decision_does_not_count_as_an_attempt_to_compact(stage, models):
    from evennia_ai.store.history.model_requests import NO_ATTEMPT, newest_attempt

    stage.says(stage.anna, "Is there a ferry tonight?")
    (room,) = [one for one in conversations_of(stage.npc.ai.ref) if one.kind == "room"]
    assert newest_attempt(room) == NO_ATTEMPT
