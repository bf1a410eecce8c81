"""Mediating: a model of the role `mediator` sums up protected passages, or refuses.

It is asked through the same limits, breaker and stop as any other model. Whatever goes wrong is a
refusal with a fixed reason. What it is sent and what it writes is in no log, no trace and no error:
watchers are told of the call without its words, and of errors the kind alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from evennia_ai.errors import ModelTimeout, ModelUnavailable
from evennia_ai.game.models.calls import Counting
from evennia_ai.game.models.clients import Access, Models
from evennia_ai.game.models.limits import CallKey
from evennia_ai.game.recording.retrying import DATABASE_ERRORS
from evennia_ai.game.senses.events import Line
from evennia_ai.knowledge.restricted.hinting import HintChoice, by_words, chosen, hint_messages
from evennia_ai.knowledge.restricted.leaks import Protected, protected
from evennia_ai.knowledge.restricted.mediation import (
    FAILED,
    MOST_IN_ALL,
    NO_CHUNKS,
    TEMPERATURE,
    UNAVAILABLE,
    MediatorAnswer,
    PagePassage,
    SafeSummary,
    mediator_messages,
    refused,
    summary_of,
)
from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply, ChatRequest
from evennia_ai.llm.roles import adapt, chat_messages
from evennia_ai.llm.structured import answered, asking

ROLE: Final = "mediator"
CALL_NAME: Final = "restricted_kb_safe_summary"
STARTING: Final = "Starting safe summary"
COMPLETED: Final = "Safe summary completed"
ANSWER_TOKENS: Final = 900
# What the task and the form of the answer take; a token is three characters at the worst.
_FRAME_TOKENS: Final = 900
_CHARACTERS_OF_TOKEN: Final = 3


NOTHING_PROTECTED: Final = protected(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Mediators:
    """The models of the process that mediate, and through what they are asked."""

    models: Models
    counting: Counting


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


def most_characters(asks: Mediators) -> int:
    """How many characters of passages the mediator can be sent."""
    access = _access(asks)
    if access is None:
        return MOST_IN_ALL
    left = access.profile.context_tokens - ANSWER_TOKENS - _FRAME_TOKENS
    return max(0, min(MOST_IN_ALL, left * _CHARACTERS_OF_TOKEN))


def mediated(wanted: Mediation, asks: Mediators) -> "Deferred[SafeSummary]":
    """A Deferred of what may be told; it never fails but by being cancelled."""
    return _made(wanted, asks, _asked)


def hinted(wanted: Mediation, asks: Mediators) -> "Deferred[SafeSummary]":
    """The same of hints: those that a mediator chooses, or, where there is none, their words.

    Nothing of what the mediator writes goes on but which hints it means.
    """
    return _made(wanted, asks, _asked_to_choose)


def _made(
    wanted: Mediation,
    asks: Mediators,
    ask: "Callable[[Mediation, Mediators], Deferred[SafeSummary] | SafeSummary]",
) -> "Deferred[SafeSummary]":
    logger.log_msg(
        f"{STARTING}: NPC {wanted.npc_ref}, turn {wanted.turn}, bases"
        f" {','.join(sorted({chunk.base for chunk in wanted.chunks})) or '-'},"
        f" chunks {len(wanted.chunks)}"
    )
    if not wanted.chunks:
        return succeed(_completed(wanted, refused(NO_CHUNKS)))
    made: Deferred[SafeSummary] = maybeDeferred(ask, wanted, asks)
    made.addErrback(_closed)
    return made.addCallback(partial(_completed, wanted))


def _asked(wanted: Mediation, asks: Mediators) -> "Deferred[SafeSummary] | SafeSummary":
    access = _access(asks)
    if access is None or _is_refused(wanted, asks):
        return refused(UNAVAILABLE)
    native = access.profile.schema == "native"
    task = mediator_messages(wanted.query, wanted.chunks)
    messages, schema = asking(chat_messages(task), MediatorAnswer, native=native)
    answer = answered(partial(_ask, wanted, asks, access, schema), messages, MediatorAnswer)
    return answer.addCallback(lambda told: summary_of(told, wanted.secret, before=wanted.before))


def _asked_to_choose(wanted: Mediation, asks: Mediators) -> "Deferred[SafeSummary] | SafeSummary":
    if not _has_model(asks):
        return by_words(wanted.query, wanted.chunks)
    access = _access(asks)
    if access is None or _is_refused(wanted, asks):
        return refused(UNAVAILABLE)
    native = access.profile.schema == "native"
    task = hint_messages(wanted.query, wanted.chunks)
    messages, schema = asking(chat_messages(task), HintChoice, native=native)
    answer = answered(partial(_ask, wanted, asks, access, schema), messages, HintChoice)
    return answer.addCallback(lambda choice: chosen(choice, wanted.chunks))


def _ask(
    wanted: Mediation,
    asks: Mediators,
    access: Access,
    schema: AnswerSchema | None,
    messages: Sequence[ChatMessage],
) -> "Deferred[ChatReply]":
    request = ChatRequest(
        messages=adapt(messages, profile=access.roles),
        model=access.model_id,
        max_tokens=ANSWER_TOKENS,
        timeout_seconds=access.profile.timeout_seconds,
        sampling=replace(access.profile.sampling, temperature=TEMPERATURE),
        schema=schema,
    )
    key = CallKey(
        npc_ref=wanted.npc_ref,
        player_ref=wanted.player_ref,
        role=ROLE,
        name=CALL_NAME,
        turn=wanted.turn,
        line=wanted.line,
        is_protected=True,
    )
    return asks.counting.asked(access, request, key)


def _access(asks: Mediators) -> Access | None:
    """The first model that can be asked now; the offline responder sums nothing up."""
    found = (one for one in asks.models.of_role(ROLE) if not one.model.offline)
    return next((one for one in found if one.breaker is None or one.breaker.admits), None)


def _has_model(asks: Mediators) -> bool:
    """Whether the game has a model for it at all, asked or not."""
    return any(not one.model.offline for one in asks.models.of_role(ROLE))


def _is_refused(wanted: Mediation, asks: Mediators) -> bool:
    """Whether a limit of the game forbids the call."""
    refusal = asks.counting.limits.refusal(
        npc_ref=wanted.npc_ref,
        player_ref=wanted.player_ref,
        npc_limits=wanted.npc_limits,
    )
    if refusal is not None:
        asks.counting.watch.refused(wanted.npc_ref, refusal)
    return refusal is not None


def _closed(failure: Failure) -> SafeSummary | Failure:
    """A refusal for whatever went wrong, of which the kind alone is logged."""
    if failure.check(CancelledError):
        return failure
    logger.log_err(f"evennia_ai: the mediator failed: {failure.type.__name__}")
    is_away = failure.check(ModelUnavailable, ModelTimeout, *DATABASE_ERRORS)
    return refused(UNAVAILABLE if is_away else FAILED)


def _completed(wanted: Mediation, summary: SafeSummary) -> SafeSummary:
    logger.log_msg(
        f"{COMPLETED}: NPC {wanted.npc_ref}, turn {wanted.turn}, chunks {len(wanted.chunks)},"
        f" decision {summary.decision}, reason {summary.reason}, preview {summary.preview!r}"
    )
    return summary
