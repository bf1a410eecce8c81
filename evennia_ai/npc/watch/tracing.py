"""OpenTelemetry traces: a span for each turn and for each model call.

Traces need `opentelemetry-sdk` (the extra `telemetry`) and `EVENNIA_AI_TRACES`. Spans and
attributes have the names of OpenTelemetry's GenAI conventions. The names are copied here because
the package of the conventions marks them as unstable. Spans contain no words of the conversation
unless the game asks for them.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from evennia_ai.engine.errors import ModelRefused, ModelUnavailable
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.model_calls.watching import TurnOutcome, WatchedCall, WatchedTurn, Watcher
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.store.model_calls import NewCall

TRACER: Final = "evennia_ai"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
AGENT_ID: Final = "gen_ai.agent.id"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_CREATION: Final = "gen_ai.usage.cache_creation.input_tokens"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
ERROR_TYPE: Final = "error.type"
STATUS_CODE: Final = "http.response.status_code"
# The names of attributes that OpenTelemetry's conventions do not define.
ROLE: Final = "evennia_ai.role"
TURN: Final = "evennia_ai.turn"
OUTCOME: Final = "evennia_ai.outcome"

_NANOSECONDS: Final = 1_000_000_000


class Traces(Watcher):
    """A watcher that makes spans. The span of a call is inside the span of its turn."""

    def __init__(
        self,
        provider: Any,
        *,
        with_content: bool = False,
        shutdown: Callable[[], None] | None = None,
    ) -> None:
        """Prepare the tracer.

        Args:
            provider: An OpenTelemetry provider, which creates the tracer.
            with_content: Whether spans contain the messages.
            shutdown: Called at the end, if this package created the provider.
        """
        self._tracer = provider.get_tracer(TRACER)
        self._with_content: Final = with_content
        self._shutdown: Final = shutdown
        self._turns: dict[str, Any] = {}
        self._calls: dict[str, Any] = {}

    def turn_began(self, turn: WatchedTurn) -> None:
        """Start the span of a turn."""
        self._turns[turn.npc_ref] = self._tracer.start_span(
            f"invoke_agent {turn.npc_name}",
            start_time=_nanoseconds(turn.began_at),
            attributes={
                OPERATION: "invoke_agent",
                AGENT_ID: turn.npc_ref,
                AGENT_NAME: turn.npc_name,
                CONVERSATION_ID: str(turn.conversation),
            },
        )

    def turn_ended(self, turn: WatchedTurn, outcome: TurnOutcome, ended_at: float) -> None:
        """End the span of a turn."""
        span = self._turns.pop(turn.npc_ref, None)
        if span is not None:
            span.set_attribute(OUTCOME, outcome)
            if outcome == "failed":
                _fail(span, "failed")
            span.end(_nanoseconds(ended_at))

    def asked(self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message]) -> None:
        """Start the span of a call, inside the span of its turn if it has one."""
        from opentelemetry import trace

        around = self._turns.get(call.key.npc_ref)
        context = trace.set_span_in_context(around) if around is not None else None
        span = self._tracer.start_span(
            f"chat {request.model}".strip(),
            context=context,
            kind=trace.SpanKind.CLIENT,
            attributes=_of_request(call, request),
        )
        if self._with_content:
            span.set_attribute(INPUT_MESSAGES, _messages(request))
        self._calls[call.id] = span

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """End the span of a call with a reply."""
        span = self._calls.pop(call.id, None)
        if span is None:
            return
        span.set_attribute(RESPONSE_MODEL, reply.model)
        span.set_attribute(FINISH_REASONS, [reply.finish_reason])
        if self._with_content:
            span.set_attribute(OUTPUT_MESSAGES, _message("assistant", reply.text))
        _end(span, row)

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """End the span of a call without a reply."""
        span = self._calls.pop(call.id, None)
        if span is None:
            return
        _fail(span, type(error).__name__)
        if isinstance(error, ModelUnavailable | ModelRefused) and error.status is not None:
            span.set_attribute(STATUS_CODE, error.status)
        _end(span, row)

    def close(self) -> None:
        """End all open spans, and send those that were not sent yet."""
        for span in (*self._calls.values(), *self._turns.values()):
            span.end()
        self._calls, self._turns = {}, {}
        if self._shutdown is not None:
            self._shutdown()


def _of_request(call: WatchedCall, request: ChatRequest) -> dict[str, Any]:
    key = call.key
    values = {
        OPERATION: "chat",
        PROVIDER: call.provider,
        REQUEST_MODEL: request.model,
        REQUEST_MAX_TOKENS: request.max_tokens,
        REQUEST_TEMPERATURE: request.sampling.temperature,
        REQUEST_TOP_P: request.sampling.top_p,
        AGENT_ID: key.npc_ref,
        ROLE: call.name,
        TURN: key.turn,
    }
    return {name: value for name, value in values.items() if value is not None}


def _end(span: Any, row: NewCall) -> None:
    values = {
        INPUT_TOKENS: row.input_tokens,
        OUTPUT_TOKENS: row.output_tokens,
        CACHE_READ: row.cached_tokens,
        CACHE_CREATION: row.written_tokens,
        FIRST_CHUNK: row.first_piece_seconds,
        OUTCOME: row.outcome,
    }
    for name, value in values.items():
        if value is not None:
            span.set_attribute(name, value)
    span.end()


def _fail(span: Any, kind: str) -> None:
    """Mark a span as failed, with the kind of error only, because its message may quote words."""
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute(ERROR_TYPE, kind)
    span.set_status(Status(StatusCode.ERROR))


def _messages(request: ChatRequest) -> str:
    parts = [(message.role, message.content) for message in request.messages]
    return json.dumps([_part(role, text) for role, text in parts])


def _message(role: str, text: str) -> str:
    return json.dumps([_part(role, text)])


def _part(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _nanoseconds(seconds: float) -> int:
    return int(seconds * _NANOSECONDS)
