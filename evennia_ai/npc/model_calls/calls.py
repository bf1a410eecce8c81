"""Calls: the common path of every call of a model in this process.

A call is refused while its NPC is paused. It counts against the limits while it runs, watchers get
reports of it, and it can be cancelled. At its end it becomes a row. A caller that has its own
transaction uses `CountedCall` and writes `row` there (`store.model_calls.add_call`). All others use
`ModelCalls.asked`, which writes the row itself.

Of a protected call, watchers learn that it was made, how long its texts were, what it cost and how
it ended. They get no words of its request, its reply or its error, because each may quote the
others. Of a mediator's reply they get the decision and the lengths of the texts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import ModelError
from evennia_ai.engine.knowledge.restricted.mediation import closed_choices
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.jobs.counting import ModelStopped, outcome_word, reply_tokens_of, usage_of
from evennia_ai.npc.model_calls.limits import CallKey, Limits, StartedCall, why_halted
from evennia_ai.npc.model_calls.watching import Watch, WatchedCall
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.services.endpoints import Access, Models
from evennia_ai.services.llm.arrival import Arrivals
from evennia_ai.services.llm.chat import ChatMessage, ChatReply, ChatRequest, Listener
from evennia_ai.services.llm.odd_replies import ODD, Oddity
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.llm.structured import json_objects
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import NewCall

REDACTED: Final = "[redacted]"


class ProtectedCallError(ModelError):
    """A protected call failed. The message has only the kind of the real error."""

    def __init__(self, endpoint: str, kind: str) -> None:
        super().__init__(
            endpoint, f"failed with {kind}; the details are hidden because the call is protected"
        )


def redacted_request(request: ChatRequest) -> ChatRequest:
    """Return the request with each message replaced by its length."""
    messages = tuple(
        ChatMessage(role=message.role, content=_length_only(message.content))
        for message in request.messages
    )
    return replace(
        request,
        messages=messages,
        passages=(),
        speaker="",
        question="",
        asker="",
        place="",
        company=(),
        thoughts={},
    )


def redacted_reply(reply: ChatReply) -> ChatReply:
    """Return the reply.

    Its text is replaced by the mediator's decision, or by the text's length.
    """
    objects = json_objects(reply.text).objects
    text = _decision(objects[0]) if len(objects) == 1 else ""
    return replace(reply, text=text or _length_only(reply.text), tool_calls=(), thoughts=None)


def _decision(answer: dict[str, Any]) -> str:
    """Return a mediator's answer as JSON without its texts. "" if it is not a mediator's answer."""
    told = closed_choices(answer, hidden=_length_only)
    return json.dumps(told, separators=(",", ":")) if told else ""


def redacted_error(error: BaseException, *, endpoint: str) -> ProtectedCallError:
    """Return an error that has only the kind of the real error."""
    return ProtectedCallError(endpoint, type(error).__name__)


def _length_only(text: str) -> str:
    return f"{REDACTED} {len(text)} characters"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCalls:
    """The models of one process, with all that counts, limits and watches their calls."""

    models: Models
    limits: Limits
    watch: Watch
    clock: Clock
    writer: Writer
    arrivals: Arrivals = field(default_factory=Arrivals)
    small_windows: dict[str, str] = field(default_factory=dict)
    """By profile: a warning for builders that its server reads fewer tokens than the profile
    sends."""
    under_way: set["CountedCall"] = field(default_factory=set)

    def asked(
        self,
        access: Access,
        request: ChatRequest,
        key: CallKey,
        *,
        prompt: Sequence[Message] = (),
        listener: Listener | None = None,
    ) -> Deferred[ChatReply]:
        """Ask a model outside of turns. Return a Deferred with the reply.

        The row of the call is written at its end, or later if the database cannot be reached.
        """
        call = CountedCall(self, access, key)

        def kept(outcome: ChatReply | Failure) -> ChatReply | Failure:
            if call.row is not None:
                doing = f"NPC {key.npc_ref}: a call of {access.name} was not recorded"
                self.writer.until_written(partial(model_calls.add_call_alone, call.row), doing)
            return outcome

        return call.ask(request, prompt=prompt, listener=listener).addBoth(kept)

    def of_npc(self, npc_ref: str) -> tuple["CountedCall", ...]:
        """Return the running calls that were made for an NPC."""
        return tuple(call for call in self.under_way if call.npc_ref == npc_ref)


class CountedCall:
    """One call of a model, which is limited, counted and watched."""

    def __init__(self, calls: ModelCalls, access: Access, key: CallKey) -> None:
        """Prepare the call.

        Fields that are missing in `key` are completed from access and request.
        """
        self.npc_ref: Final = key.npc_ref
        self._calls: Final = calls
        self._access: Final = access
        self._key = replace(key, profile=access.profile.name, is_offline=access.model.offline)
        self._first_piece_seconds: float | None = None
        self._asking: Deferred[ChatReply] | None = None
        self._given_up = ""
        self.row: NewCall | None = None
        """The row of the call, once the call has ended."""

    def ask(
        self,
        request: ChatRequest,
        *,
        listener: Listener | None = None,
        prompt: Sequence[Message] = (),
    ) -> Deferred[ChatReply]:
        """Ask the model. Return a Deferred with the reply.

        It fails with ModelStopped if the game is stopped or the NPC paused.

        Args:
            prompt: The messages before they were adapted to the model, for watchers.

        Raises:
            StoreError: At once, if today's use cannot be read.
        """
        calls, access = self._calls, self._access
        self._key = key = _complete_key(self._key, request)
        call = WatchedCall(key=key, endpoint=access.name, provider=access.profile.client)
        started = calls.limits.begun(key)
        if key.is_protected:
            calls.watch.asked(call, redacted_request(request), ())
        else:
            calls.watch.asked(call, request, prompt)
        heard = None if listener is None else self._timed(listener, started.started_at)
        self._asking = maybeDeferred(self._complete_unless_halted, request, heard)
        calls.under_way.add(self)
        return self._asking.addBoth(self._end_call, call, started, request)

    def note_odd(self, odd: Sequence[Oddity]) -> None:
        """Note in the row of the call that its reply was odd, and report that to watchers."""
        if self.row is not None:
            self.row = replace(self.row, outcome=f"{ODD}{'+'.join(odd)}")
            self._calls.watch.odd_reply(self.row.model or self._access.name, odd)

    def give_up(self, why: str) -> None:
        """Cancel the call if it is running. Its Deferred then fails with ModelStopped."""
        if self._asking is not None:
            self._given_up = why
            self._asking.cancel()

    def _complete_unless_halted(
        self, request: ChatRequest, listener: Listener | None
    ) -> Deferred[ChatReply]:
        if why := why_halted(self._key.npc_ref):
            raise ModelStopped(self._access.name, why)
        return self._access.model.complete(request, listener=listener)

    def _timed(self, listener: Listener, started_at: float) -> Listener:
        """Return a listener that also notes when the first part of the reply came."""
        clock = self._calls.clock

        def heard(piece: str) -> None:
            if self._first_piece_seconds is None:
                self._first_piece_seconds = max(0.0, clock.seconds() - started_at)
            listener(piece)

        return heard

    def _end_call(
        self,
        outcome: ChatReply | Failure,
        call: WatchedCall,
        started: StartedCall,
        request: ChatRequest,
    ) -> ChatReply | Failure:
        calls = self._calls
        self._asking = None
        calls.under_way.discard(self)
        if self._given_up and isinstance(outcome, Failure):
            outcome = Failure(ModelStopped(self._access.name, self._given_up))
        row = calls.limits.ended(
            started,
            usage_of(outcome),
            outcome_word(outcome),
            pricing=partial(self._access.cost, at=started.started_at),
            reply_tokens=reply_tokens_of(outcome),
            first_piece_seconds=self._first_piece_seconds,
        )
        if isinstance(outcome, ChatReply):
            profile = self._access.profile
            where = f"{profile.client} {profile.base_url} {request.model}"
            whole = calls.arrivals.whole_tokens(where, request, outcome)
            row = replace(row, whole_tokens=whole)
        self.row = row
        self._tell(outcome, call, row)
        return outcome

    def _tell(self, outcome: ChatReply | Failure, call: WatchedCall, row: NewCall) -> None:
        """Report the end of the call to watchers, without words if the call is protected."""
        watch, is_protected = self._calls.watch, call.key.is_protected
        if isinstance(outcome, Failure):
            error = outcome.value
            name = self._access.name
            watch.failed(call, redacted_error(error, endpoint=name) if is_protected else error, row)
        else:
            watch.answered(call, redacted_reply(outcome) if is_protected else outcome, row)


def _complete_key(key: CallKey, request: ChatRequest) -> CallKey:
    """Return the key with model and tokens from the request. Prompt tokens may be an estimate."""
    tokens = key.prompt_tokens or sum(
        ESTIMATE.of_message(message.content) for message in request.messages
    )
    return replace(key, model=request.model, prompt_tokens=tokens, reply_tokens=request.max_tokens)
