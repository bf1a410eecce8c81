"""Answers of a wanted form: asked for, read, and asked for once more where they do not fit.

Everything that decides what a model is sent is a pure function of values, so that the caller can
commit the messages before each call: `asking` before the first, `repair` before the second.
`answered` only puts the two calls together.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.errors import ModelRubbish
from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply
from evennia_ai.llm.json_answers import json_objects
from evennia_ai.llm.json_schemas import strict_schema
from evennia_ai.llm.reasoning import without_reasoning

AnswerT = TypeVar("AnswerT", bound=BaseModel)
Ask = Callable[[tuple[ChatMessage, ...]], Deferred[ChatReply]]
"""Commits the messages, then asks the model."""

SHOWN_CHARACTERS: Final = 4_000
"""How much of a wrong answer the model is shown again."""

TOLD_PROBLEMS: Final = 5

INSTRUCTION: Final = (
    "Answer with one JSON object and nothing else: no text around it, no code fence."
    " It must fit this JSON schema:\n{schema}"
)
REPAIR: Final = (
    "Your last answer cannot be used: {problem}. Write the whole answer again, as one JSON object"
    " that fits the schema, and nothing else."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Generic[AnswerT]):
    """An answer, or the `problem` with what was to be one."""

    answer: AnswerT | None = None
    problem: str = ""


def asking(
    messages: Sequence[ChatMessage], form: type[BaseModel], *, native: bool
) -> tuple[tuple[ChatMessage, ...], AnswerSchema | None]:
    """The messages and the schema that ask for an answer of a form.

    A server that takes schemas (`native`) is given it beside the messages, any other one is told
    of it in a last message.
    """
    schema = schema_of(form)
    if native:
        return tuple(messages), schema
    told = INSTRUCTION.format(schema=_canonical(schema.schema))
    return (*messages, ChatMessage(role="system", content=told)), None


def read(text: str, form: type[AnswerT]) -> Read[AnswerT]:
    """The first object in a reply's text that has the form, else what is wrong."""
    found = json_objects(text)
    if found.problem:
        return Read(problem=found.problem)
    problem = "it holds no JSON object"
    for place, value in enumerate(found.objects):
        try:
            return Read(answer=form.model_validate(value))
        except ValidationError as error:
            problem = problem if place else _why_unfit(error)
    return Read(problem=problem)


def repair(messages: Sequence[ChatMessage], reply: str, problem: str) -> tuple[ChatMessage, ...]:
    """The messages of the one more try: those before, the wrong answer, what is wrong with it."""
    shown = without_reasoning(reply).strip()[:SHOWN_CHARACTERS]
    said = (ChatMessage(role="assistant", content=shown),) if shown else ()
    return (*messages, *said, ChatMessage(role="system", content=REPAIR.format(problem=problem)))


def answered(ask: Ask, messages: Sequence[ChatMessage], form: type[AnswerT]) -> Deferred[AnswerT]:
    """The answer to messages that `asking` made, after at most two calls.

    Fails with `ModelRubbish` where the second answer has not the form either, and with whatever
    `ask` fails with.
    """

    def first(reply: ChatReply) -> AnswerT | Deferred[AnswerT]:
        got = read(reply.text, form)
        if got.answer is not None:
            return got.answer
        again = ask(repair(messages, reply.text, got.problem))
        return again.addCallback(second)

    def second(reply: ChatReply) -> AnswerT:
        got = read(reply.text, form)
        if got.answer is None:
            raise ModelRubbish(reply.model, f"asked twice for {form.__name__}: {got.problem}")
        return got.answer

    return maybeDeferred(ask, tuple(messages)).addCallback(first)


def schema_of(form: type[BaseModel]) -> AnswerSchema:
    """The schema of a form as servers take it."""
    return AnswerSchema(
        name=form.__name__,
        schema=strict_schema(form.model_json_schema(), origin=form.__name__),
    )


def _canonical(schema: Mapping[str, Any]) -> str:
    return json.dumps(schema, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _why_unfit(error: ValidationError) -> str:
    """What is wrong with an answer, for the model that wrote it."""
    found = error.errors(include_url=False, include_input=False, include_context=False)
    more = f"; and {len(found) - TOLD_PROBLEMS} more" if len(found) > TOLD_PROBLEMS else ""
    return "; ".join(map(_problem_of, found[:TOLD_PROBLEMS])) + more


def _problem_of(one: ErrorDetails) -> str:
    where = ".".join(str(step)[:80] for step in one["loc"]) or "the object"
    return f"{where}: {one['msg'].removeprefix('Value error, ')[:200]}"
