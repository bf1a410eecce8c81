"""Mediating: a model in the role `mediator` summarises protected passages, or refuses to.

Its calls have the same limits, breaker and stops as all others. Every error becomes a refusal with
a fixed reason. No log, trace or error has words of its request or its reply. Watchers learn of the
call without its words, and logs have only the kind of an error.
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
# An upper bound for the tokens of the task and of the answer's form.
_FRAME_TOKENS: Final = 900
_CHARACTERS_OF_TOKEN: Final = 3


NOTHING_PROTECTED: Final = protect_texts(())
_NOBODY: Final = refuse_answer(UNAVAILABLE)

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mediation:
    """A request to the mediator: protected passages, and for whom they are summarised."""

    npc_ref: str

    player_ref: str
    """The player against whose limits the call counts."""

    npc_limits: Mapping[str, float]
    """The NPC's own limits."""

    turn: int
    query: str

    chunks: tuple[PagePassage, ...]
    """The passages to summarise, or the hints from which to choose."""

    secret: Protected = NOTHING_PROTECTED
    """What the summary must not contain, neither by itself nor together with `before`."""

    before: str = ""
    """The texts of earlier summaries in the conversation."""

    line: Line | None = None
    """The player's line against which the call counts, None for none."""


def most_characters(calls: ModelCalls) -> int:
    """Return the most characters of passages that fit into the mediator's request."""
    access = calls.models.ready(ROLE)
    if access is None:
        return MOST_IN_ALL
    left = access.context_tokens - ANSWER_TOKENS - _FRAME_TOKENS
    return max(0, min(MOST_IN_ALL, left * _CHARACTERS_OF_TOKEN))


def summarise_safely(wanted: Mediation, calls: ModelCalls) -> "Deferred[SafeSummary]":
    """Return a Deferred with a safe summary. It fails only if it is cancelled."""
    return _run_mediation(wanted, partial(_summed_up, wanted, calls))


def choose_hints(wanted: Mediation, calls: ModelCalls) -> "Deferred[SafeSummary]":
    """Return a Deferred with the hints that a mediator chooses by their numbers.

    Nothing else in the mediator's reply is used. If the game has no mediator, the words of the
    query choose the hints.
    """
    return _run_mediation(wanted, partial(_hints_chosen, wanted, calls))


def _run_mediation(
    wanted: Mediation, make: Callable[[], Coroutine[Any, Any, SafeSummary]]
) -> "Deferred[SafeSummary]":
    logger.log_msg(
        f"{STARTING}: NPC {wanted.npc_ref}, turn {wanted.turn}, bases"
        f" {','.join(sorted({chunk.base for chunk in wanted.chunks})) or '-'},"
        f" chunks {len(wanted.chunks)}"
    )
    if not wanted.chunks:
        return succeed(_log_completed(wanted, refuse_answer(NO_CHUNKS)))
    made = Deferred.fromCoroutine(make())
    made.addErrback(_refusal_for)
    return made.addCallback(partial(_log_completed, wanted))


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
    """Return the mediator's answer, None if no mediator can or may be asked now."""
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
    """True if a limit forbids the call. The refusal is reported to watchers."""
    refusal = calls.limits.refusal(
        npc_ref=wanted.npc_ref,
        player_ref=wanted.player_ref,
        npc_limits=wanted.npc_limits,
    )
    if refusal is not None:
        calls.watch.refused(wanted.npc_ref, refusal)
    return refusal is not None


def _refusal_for(failure: Failure) -> SafeSummary | Failure:
    """Return a refusal in place of any error except cancellation. Log only the error's kind."""
    if failure.check(CancelledError):
        return failure
    logger.log_err(f"evennia_ai: the mediator failed: {failure.type.__name__}")
    error = failure.value
    fault = error.fault if isinstance(error, ModelError) else None
    is_away = fault in (Fault.TEMPORARY, Fault.ACCOUNT) or failure.check(*DATABASE_ERRORS)
    return refuse_answer(UNAVAILABLE if is_away else FAILED)


def _log_completed(wanted: Mediation, summary: SafeSummary) -> SafeSummary:
    logger.log_msg(
        f"{COMPLETED}: NPC {wanted.npc_ref}, turn {wanted.turn}, chunks {len(wanted.chunks)},"
        f" decision {summary.decision}, reason {summary.reason}, preview {summary.preview!r}"
    )
    return summary
