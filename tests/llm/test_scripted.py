"""The fake model does what it is told and nothing else."""

import pytest
from twisted.internet.task import Clock

from evennia_ai.llm.chat import ChatReply, Usage
from evennia_ai.llm.errors import EndpointError, ModelTimeout
from evennia_ai.llm.scripted import ScriptedModel, ScriptEndedError
from tests.llm.builders import a_request
from tests.llm.test_resilience import outcome, watched


def test_lines_are_said_in_order_and_requests_kept() -> None:
    model = ScriptedModel(["One.", "Two."])
    requests = [a_request("a"), a_request("b")]
    assert [outcome(model.complete(one)).text for one in requests] == ["One.", "Two."]
    assert model.requests == requests


def test_a_single_text_is_one_line() -> None:
    assert outcome(ScriptedModel("One.").complete(a_request())).text == "One."


def test_a_callable_answers_the_request() -> None:
    model = ScriptedModel(lambda request: request.question.upper())
    assert outcome(model.complete(a_request("hello"))).text == "HELLO"


def test_a_whole_reply_is_given_as_it_is() -> None:
    reply = ChatReply(text="cut", model="other", finish_reason="length")
    assert outcome(ScriptedModel([reply]).complete(a_request())) is reply


def test_an_error_is_failed_with() -> None:
    problem = ModelTimeout("scripted", 5)
    assert outcome(ScriptedModel([problem]).complete(a_request())) is problem


def test_a_script_that_has_ended_says_what_was_asked() -> None:
    problem = outcome(ScriptedModel([]).complete(a_request("More?")))
    assert isinstance(problem, ScriptEndedError)
    assert str(problem) == "model 'scripted' has no line left for 'More?'"


def test_an_answer_can_come_later() -> None:
    clock = Clock()
    result = watched(ScriptedModel(["Late."], delay_seconds=2, clock=clock).complete(a_request()))
    clock.advance(1.9)
    assert result == []
    clock.advance(0.1)
    assert result[0].text == "Late."


def test_a_delay_without_a_clock_is_refused() -> None:
    with pytest.raises(EndpointError, match="a delay needs one"):
        ScriptedModel([], delay_seconds=1)


def test_usage_counts_words() -> None:
    reply = outcome(ScriptedModel(["one two three"]).complete(a_request("Hello there")))
    assert reply.usage == Usage(input_tokens=5, output_tokens=3)
