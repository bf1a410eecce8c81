"""Mediating: a model of the role `mediator` sums up protected passages, or refuses.

It is asked through the same limits, breaker and stop as any other model. Whatever goes wrong is a
refusal with a fixed reason. What it is sent and what it writes is in no log, no trace and no error:
watchers are told of the call without its words, and of errors the kind alone.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from evennia.utils import logger
from pydantic import BaseModel
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import Fault, ModelError
from evennia_ai.engine.knowledge.restricted.hinting import (
    HintChoice,
    choose_by_numbers,
    choose_by_words,
    hint_messages,
)
from evennia_ai.engine.knowledge.restricted.leaks import Protected, protect_texts
from evennia_ai.engine.knowledge.restricted.mediation import (
    FAILED,
    MOST_IN_ALL,
    NO_CHUNKS,
    TEMPERATURE,
    UNAVAILABLE,
    MediatorAnswer,
    PagePassage,
    SafeSummary,
    mediator_messages,
    read_mediator_answer,
    refuse_answer,
)
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.senses.events import Line
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import AnswerSchema, ChatMessage, ChatReply
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.services.llm.structured import ask_for_answer, request_for

ROLE: Final = "mediator"
CALL_NAME: Final = "restricted_kb_safe_summary"
STARTING: Final = "Starting safe summary"
COMPLETED: Final = "Safe summary completed"
ANSWER_TOKENS: Final = 900
# What the task and the form of the answer take; a token is three characters at the worst.
_FRAME_TOKENS: Final = 900
_CHARACTERS_OF_TOKEN: Final = 3


NOTHING_PROTECTED: Final = protect_texts(())
_NOBODY: Final = refuse_answer(UNAVAILABLE)

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mediation:
    """What is to be summed up, for whom."""

    npc_ref: str

    player_ref: str
    """Who is charged for it."""

    npc_limits: Mapping[str, int]
    """What narrows what the NPC may use."""

    turn: int
    query: str

    chunks: tuple[PagePassage, ...]
    """What is sent: passages, or hints to choose from."""

    secret: Protected = NOTHING_PROTECTED
    """What must not be given away, neither at once nor together with what was told `before`."""

    before: str = ""
    """What was told in the conversation before."""

    line: Line | None = None
    """The line that it counts against."""


def most_characters(calls: ModelCalls) -> int:
    """How many characters of passages the mediator can be sent."""
    access = calls.models.ready(ROLE)
    if access is None:
        return MOST_IN_ALL
    left = access.context_tokens - ANSWER_TOKENS - _FRAME_TOKENS
    return max(0, min(MOST_IN_ALL, left * _CHARACTERS_OF_TOKEN))


def mediated(wanted: Mediation, calls: ModelCalls) -> "Deferred[SafeSummary]":
    """A Deferred of what may be told; it never fails but by being cancelled."""
    return _made(wanted, partial(_summed_up, wanted, calls))


def hinted(wanted: Mediation, calls: ModelCalls) -> "Deferred[SafeSummary]":
    """The same of hints: those that a mediator chooses, or, where there is none, their words.

    Nothing of what the mediator writes goes on but which hints it means.
    """
    return _made(wanted, partial(_hints_chosen, wanted, calls))


def _made(
    wanted: Mediation, make: Callable[[], Coroutine[Any, Any, SafeSummary]]
) -> "Deferred[SafeSummary]":
    logger.log_msg(
        f"{STARTING}: NPC {wanted.npc_ref}, turn {wanted.turn}, bases"
        f" {','.join(sorted({chunk.base for chunk in wanted.chunks})) or '-'},"
        f" chunks {len(wanted.chunks)}"
    )
    if not wanted.chunks:
        return succeed(_completed(wanted, refuse_answer(NO_CHUNKS)))
    made = Deferred.fromCoroutine(make())
    made.addErrback(_closed)
    return made.addCallback(partial(_completed, wanted))


async def _summed_up(wanted: Mediation, calls: ModelCalls) -> SafeSummary:
    messages = mediator_messages(wanted.query, wanted.chunks)
    answer = await _answer(wanted, calls, messages, MediatorAnswer)
    return (
        read_mediator_answer(answer, wanted.secret, before=wanted.before)
        if answer is not None
        else _NOBODY
    )


async def _hints_chosen(wanted: Mediation, calls: ModelCalls) -> SafeSummary:
    if not calls.models.thinking(ROLE):
        return choose_by_words(wanted.query, wanted.chunks)
    messages = hint_messages(wanted.query, wanted.chunks)
    choice = await _answer(wanted, calls, messages, HintChoice)
    return choose_by_numbers(choice, wanted.chunks) if choice is not None else _NOBODY


async def _answer(
    wanted: Mediation, calls: ModelCalls, task: Sequence[Message], form: type[Answer]
) -> Answer | None:
    """What a mediator answers, None where none may be asked now."""
    access = calls.models.ready(ROLE)
    if access is None or _is_refused(wanted, calls):
        return None
    messages, schema = request_for(chat_messages(task), form, native=access.is_held_to_schemas)
    return await ask_for_answer(partial(_ask, wanted, calls, access, schema), messages, form)


def _ask(
    wanted: Mediation,
    calls: ModelCalls,
    access: Access,
    schema: AnswerSchema | None,
    messages: Sequence[ChatMessage],
) -> "Deferred[ChatReply]":
    sampling = replace(access.profile.sampling, temperature=TEMPERATURE)
    request = access.request(messages, max_tokens=ANSWER_TOKENS, sampling=sampling, schema=schema)
    key = CallKey(
        npc_ref=wanted.npc_ref,
        player_ref=wanted.player_ref,
        role=ROLE,
        name=CALL_NAME,
        turn=wanted.turn,
        line=wanted.line,
        is_protected=True,
    )
    return calls.asked(access, request, key)


def _is_refused(wanted: Mediation, calls: ModelCalls) -> bool:
    """True if a limit of the game forbids the call."""
    refusal = calls.limits.refusal(
        npc_ref=wanted.npc_ref,
        player_ref=wanted.player_ref,
        npc_limits=wanted.npc_limits,
    )
    if refusal is not None:
        calls.watch.refused(wanted.npc_ref, refusal)
    return refusal is not None


def _closed(failure: Failure) -> SafeSummary | Failure:
    """A refusal for whatever went wrong, of which the kind alone is logged."""
    if failure.check(CancelledError):
        return failure
    logger.log_err(f"evennia_ai: the mediator failed: {failure.type.__name__}")
    error = failure.value
    fault = error.fault if isinstance(error, ModelError) else None
    is_away = fault in (Fault.TEMPORARY, Fault.ACCOUNT) or failure.check(*DATABASE_ERRORS)
    return refuse_answer(UNAVAILABLE if is_away else FAILED)


def _completed(wanted: Mediation, summary: SafeSummary) -> SafeSummary:
    logger.log_msg(
        f"{COMPLETED}: NPC {wanted.npc_ref}, turn {wanted.turn}, chunks {len(wanted.chunks)},"
        f" decision {summary.decision}, reason {summary.reason}, preview {summary.preview!r}"
    )
    return summary
