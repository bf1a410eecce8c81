"""Replies whose first sentences are said before the rest has arrived."""

import pytest
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import Fault, ModelRubbish, ModelTimeout, StoreError
from evennia_ai.npc.speech import voice
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store.history import turns


class Streaming:
    """A model that streams text when the test says so."""

    name = "streaming"
    offline = False

    def __init__(self):
        self.asked: Deferred[ChatReply] | None = None
        self.listener = None

    def complete(self, request, *, listener=None):
        self.listener, self.asked = listener, Deferred()
        return self.asked

    def writes(self, text):
        self.listener(text)

    def ends(self, text):
        self.asked.callback(ChatReply(text=text, model=self.name))

    def fails(self):
        self.asked.errback(ModelTimeout(self.name, 5.0))

    def close(self):
        """Do nothing, because the model holds no connection."""


@pytest.fixture
def model(stage):
    made = Streaming()
    stage.install(made, given_profiles={"default": {"speaks_early": True}})
    stage.says(stage.anna, "Oren, does the ferry run?")
    return made


def said(stage) -> list[str]:
    return [line for line in stage.screen_of(stage.anna) if line.startswith("Oren says")]


def replies(stage) -> list[tuple[str, str]]:
    return [(kind, body) for kind, _, body in stage.records() if kind in ("assistant", "spoken")]


def test_first_sentence_is_said_while_the_rest_arrives(stage, model):
    model.writes("Aye, at dusk. ")
    model.writes("Bring a ")

    assert said(stage) == ['Oren says, "Aye, at dusk."']


def test_early_words_are_committed_before_they_are_said(stage, model):
    model.writes("Aye, at dusk. Bring")

    assert replies(stage) == [("spoken", "Aye, at dusk.")]


def test_rest_is_said_in_one_line_and_the_whole_reply_is_recorded(stage, model):
    text = "Aye, at dusk. Bring a coat. It is cold out there."
    model.writes("Aye, at dusk. Bring a coat. ")
    model.writes("It is cold out there.")
    model.ends(text)
    stage.passes()

    assert "".join(line[12:-1] + " " for line in said(stage)).strip() == text
    assert len(said(stage)) == 2
    assert replies(stage)[-1] == ("assistant", text)


def test_record_has_only_the_said_words_when_a_reply_breaks_off(stage, model):
    model.writes("Aye, at dusk. Bring")
    model.fails()
    stage.passes()

    assert said(stage) == ['Oren says, "Aye, at dusk."']
    assert replies(stage)[-1] == ("assistant", "Aye, at dusk. —")
    assert turns.last_turn(stage.npc.ai.ref).state == "failed"


def test_said_words_stay_and_nothing_is_added_when_a_filter_ends_a_reply(stage, model, logged):
    model.writes("Aye, at dusk. Bring")
    model.asked.errback(ModelRubbish(model.name, "filter", fault=Fault.POLICY))
    stage.passes()

    assert said(stage) == ['Oren says, "Aye, at dusk."']
    assert replies(stage)[-1] == ("assistant", "Aye, at dusk. —")


@pytest.mark.parametrize(
    ("whole", "rest"),
    [
        ("Aye, at dusk. Bring a coat. It is", 'Oren says, "Bring a coat."'),
        ("Aye, at dusk. Bring a", 'Oren says, "Aye, at dusk."'),
    ],
)
def test_truncated_reply_ends_with_a_whole_sentence_after_an_early_start(stage, model, whole, rest):
    model.writes("Aye, at dusk. Bring")
    model.asked.callback(ChatReply(text=whole, model=model.name, finish_reason="length"))
    stage.passes()

    assert said(stage)[-1] == rest
    assert turns.last_turn(stage.npc.ai.ref).state == "done"


def test_said_words_are_in_the_history_after_a_crash(stage, model):
    model.writes("Aye, at dusk. Bring")
    assert turns.close_interrupted() == 1

    assert replies(stage)[-1] == ("assistant", "Aye, at dusk. —")


def test_npc_says_the_start_of_a_reply_with_the_rest_when_it_cannot_be_committed_early(
    stage, model, monkeypatch, logged
):
    def refuse(*_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(turns, "commit_spoken", refuse)
        model.writes("Aye, at dusk. Bring")
    assert said(stage) == []

    model.ends("Aye, at dusk. Bring a coat.")
    stage.passes()
    assert said(stage) == ['Oren says, "Aye, at dusk. Bring a coat."']


def test_nothing_is_said_early_when_nobody_waits(stage, model):
    stage.anna.location = None
    stage.npc.ai.disable()
    model.writes("Aye, at dusk. Bring")

    assert replies(stage) == []


def test_rest_of_a_reply_is_said_if_a_hook_fails_at_the_first_sentence(
    stage, model, logged, monkeypatch
):
    def breaks(*_, **__):
        raise ValueError("a hook of the game")

    with monkeypatch.context() as patch:
        patch.setattr(voice, "deliver_reply", breaks)
        model.writes("Aye, at dusk. Bring a coat. It")
    model.ends("Aye, at dusk. Bring a coat. It is cold out there.")
    stage.passes()

    assert any("broke off the start of a reply" in line for line in logged)
    assert ("assistant", "Aye, at dusk. Bring a coat. It is cold out there.") in replies(stage)
    assert "It is cold out there." in said(stage)[-1]


def test_call_written_as_text_is_not_said_early(stage, model):
    text = 'Wait here. I look. <tool_call>{"name": "dance", "arguments": {"to": "A. B."}}'
    for letter in text:
        model.writes(letter)
    assert said(stage) == ['Oren says, "Wait here."']
    model.ends(text)
    assert said(stage) == ['Oren says, "Wait here."', 'Oren says, "I look."']
