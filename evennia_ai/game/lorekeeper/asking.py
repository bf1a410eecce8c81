"""Asking: the two models of the lorekeeper, the cheap one that sorts tasks and the one that writes.

Both are asked as every model of the game: through its breaker and its queue, counted, limited for
the builder who asks, and stopped with the game. A profile that is away is passed over for the next
one of its role. Of what a restricted base gives, no watcher is told a word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.errors import EvenniaAIError, ModelError, ModelTimeout, ModelUnavailable
from evennia_ai.game.models.clients import Access
from evennia_ai.game.models.limits import CallKey
from evennia_ai.game.runtime import Runtime
from evennia_ai.knowledge.assembly.requests import Failed, Plan
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.llm.profiles import ModelRole
from evennia_ai.llm.replies.structured import asking
from evennia_ai.llm.roles import adapt, chat_messages

LOREKEEPER: Final = "lorekeeper"
"""Who asks, where otherwise the reference of an NPC stands; also the role of who writes."""

PLAN_TOKENS: Final = 300
PLAN_SECONDS: Final = 20.0

RequestOf = Callable[[Access], ChatRequest]


class NoWriterError(EvenniaAIError):
    """No model can be asked to write."""


def writers(live: Runtime) -> tuple[Access, ...]:
    """The models that write, each instead of the one before it.

    Raises:
        NoWriterError: there is none.
    """
    found = _models(live, "lorekeeper")
    if not found:
        raise NoWriterError(
            "no model can write for the lorekeeper: name a profile in"
            " EVENNIA_AI_MODEL_ROLES['lorekeeper'], or set EVENNIA_AI_BASE_URL"
        )
    return found


def refuse_over_limit(live: Runtime, player_ref: str) -> None:
    """NoWriterError where this builder, the lorekeeper or the game has asked enough for now."""
    refusal = live.limits.refusal(npc_ref=LOREKEEPER, player_ref=player_ref)
    if refusal is not None:
        raise NoWriterError(f"the lorekeeper is not asked: {refusal.told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks the models; `is_protected` where their words are of a restricted base."""

    live: Runtime
    player_ref: str
    is_protected: bool = False

    def written(self, request_of: RequestOf) -> "Deferred[ChatReply]":
        """The reply of the model that writes. It fails with a ModelError."""
        asked = self._in_turn(writers(self.live), request_of, role="lorekeeper")
        return Deferred.fromCoroutine(asked)

    def planned(self, plan: Plan) -> "Deferred[str | Failed]":
        """What the planner's model wrote, or why it wrote nothing."""
        accesses, request_of = _models(self.live, "planner"), partial(_planning_request, plan)
        asked = self._in_turn(accesses, request_of, role="planner")
        reply: Deferred[Any] = Deferred.fromCoroutine(asked)
        return reply.addCallbacks(lambda said: said.text, _no_plan)

    async def _in_turn(
        self, accesses: tuple[Access, ...], request_of: RequestOf, *, role: ModelRole
    ) -> ChatReply:
        """The reply of the first model that is not away."""
        error: EvenniaAIError = NoWriterError(f"there is no model for the role {role}")
        key = CallKey(
            npc_ref=LOREKEEPER,
            player_ref=self.player_ref,
            role=role,
            name="" if role == "lorekeeper" else "lorekeeper planning",
            is_protected=self.is_protected,
        )
        for access in accesses:
            try:
                return await self.live.counting.asked(access, request_of(access), key)
            except (ModelUnavailable, ModelTimeout) as away:
                error = away
        raise error


def _planning_request(plan: Plan, access: Access) -> ChatRequest:
    messages, schema = asking(
        chat_messages(plan.messages), plan.schema, native=access.profile.schema == "native"
    )
    return ChatRequest(
        messages=adapt(messages, profile=access.roles),
        model=access.model_id,
        max_tokens=PLAN_TOKENS,
        timeout_seconds=min(PLAN_SECONDS, access.profile.timeout_seconds),
        sampling=access.profile.sampling,
        schema=schema,
    )


def _no_plan(failure: Failure) -> Failed:
    failure.trap(ModelError, NoWriterError)
    return Failed(failure.getErrorMessage())


def _models(live: Runtime, role: ModelRole) -> tuple[Access, ...]:
    return tuple(one for one in live.models.of_role(role) if not one.model.offline)
