"""Test that an answer has the required form, or that the caller gets an error."""

import json
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import ModelRubbish, ModelTimeout
from evennia_ai.services.llm.chat import ChatMessage, ChatReply
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.structured import (
    ask_for_answer,
    read_answer,
    repair_request,
    request_for,
)
from tests.services.llm.builders import a_message, a_request
from tests.services.llm.test_resilience import outcome, watched


class Decision(BaseModel):
    """The form that these tests require."""

    model_config = ConfigDict(extra="forbid")

    answer: Literal["yes", "no"]
    why: Annotated[str, Field(max_length=20)] = ""


ASKED = (a_message("system", "Decide."), a_message("user", "Does Oren answer?"))


class Asked:
    """A scripted model that stores its requests."""

    def __init__(self, *lines: Any) -> None:
        self.model = ScriptedModel(lines)

    def __call__(self, messages: tuple[ChatMessage, ...]) -> Deferred[ChatReply]:
        return self.model.complete(a_request(messages=messages))

    @property
    def sent(self) -> list[tuple[ChatMessage, ...]]:
        return [request.messages for request in self.model.requests]


def test_server_with_schemas_gets_the_schema_separately() -> None:
    messages, schema = request_for(ASKED, Decision, native=True)
    assert messages == ASKED
    assert schema is not None
    assert (schema.name, schema.schema["required"]) == ("Decision", ["answer", "why"])


def test_other_server_gets_the_schema_in_a_last_message() -> None:
    messages, schema = request_for(ASKED, Decision, native=False)
    assert schema is None
    assert messages[:-1] == ASKED
    assert messages[-1].role == "system"
    told = json.loads(messages[-1].content.rpartition("\n")[2])
    assert told["properties"]["answer"] == {"enum": ["yes", "no"], "type": "string"}


def test_form_is_always_described_in_the_same_words() -> None:
    assert request_for(ASKED, Decision, native=False) == request_for(ASKED, Decision, native=False)


@pytest.mark.parametrize(
    "text",
    [
        '{"answer": "yes"}',
        'Surely:\n```json\n{"answer": "yes"}\n```',
        '{"format": "JSON"} {"answer": "yes"}',
        '<think>She asks.</think>{"answer": "yes"}',
    ],
)
def test_answer_is_read_anywhere_in_the_reply(text: str) -> None:
    assert read_answer(text, Decision).answer == Decision(answer="yes")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("yes", "it holds no JSON object"),
        ('{"answer": "maybe"}', "answer: Input should be 'yes' or 'no'"),
        ('{"why": 1}', "answer: Field required; why: Input should be a valid string"),
        ('{"answer": "yes", "x": 1}', "x: Extra inputs are not permitted"),
        ('{"answer"', "it is not a complete JSON object"),
    ],
)
def test_problem_of_an_answer_is_described(text: str, problem: str) -> None:
    got = read_answer(text, Decision)
    assert got.answer is None
    assert got.problem.startswith(problem)


def test_only_the_first_problems_are_described() -> None:
    many = '{"answer": "yes", ' + ", ".join(f'"x{n}": 1' for n in range(7)) + "}"
    assert read_answer(many, Decision).problem.endswith(
        "x4: Extra inputs are not permitted; and 2 more"
    )


def test_good_answer_takes_one_call() -> None:
    ask = Asked('{"answer": "no"}')
    assert outcome(ask_for_answer(ask, ASKED, Decision)) == Decision(answer="no")
    assert ask.sent == [ASKED]


def test_bad_answer_is_asked_for_again_with_its_problem() -> None:
    ask = Asked("<think>Hm.</think>Maybe.", '{"answer": "no"}')
    assert outcome(ask_for_answer(ask, ASKED, Decision)) == Decision(answer="no")
    wanted = repair_request(ASKED, "Maybe.", "it holds no JSON object")
    assert ask.sent == [ASKED, wanted]
    assert wanted[len(ASKED)] == a_message("assistant", "Maybe.")
    assert "cannot be used: it holds no JSON object." in wanted[-1].content


def test_empty_answer_is_not_shown_to_the_model_again() -> None:
    assert [one.role for one in repair_request(ASKED, " \n", "it is empty")] == [
        "system",
        "user",
        "system",
    ]


def test_long_bad_answer_is_shown_in_part() -> None:
    assert len(repair_request(ASKED, "x" * 50_000, "it is prose")[len(ASKED)].content) == 4_000


def test_two_bad_answers_are_an_error() -> None:
    ask = Asked("Maybe.", "Perhaps.")
    problem = outcome(ask_for_answer(ask, ASKED, Decision))
    assert isinstance(problem, ModelRubbish)
    assert str(problem) == (
        "model 'tiny' gave no usable reply: asked twice for Decision: it holds no JSON object"
    )


def test_failed_call_is_not_repeated() -> None:
    problem = ModelTimeout("tiny", 5)
    ask = Asked(problem)
    assert outcome(ask_for_answer(ask, ASKED, Decision)) is problem
    assert len(ask.sent) == 1


def test_exception_of_the_caller_fails_the_answer() -> None:
    problem = ValueError("not committed")

    def ask(messages: tuple[ChatMessage, ...]) -> Deferred[ChatReply]:
        raise problem

    assert outcome(ask_for_answer(ask, ASKED, Decision)) is problem


def test_cancelling_the_answer_cancels_the_call() -> None:
    asked: Deferred[ChatReply] = Deferred()
    result = ask_for_answer(lambda messages: asked, ASKED, Decision)
    watched(result)
    result.cancel()
    assert asked.called
