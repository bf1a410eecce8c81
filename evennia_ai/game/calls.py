"""Calls: how a model is asked, for whatever role, so that it is stopped, counted and watched.

Whoever has a transaction of its own for what comes of a call asks with `Call` and writes its `row`
there (`store.model_calls.add`); everybody else asks with `asked`, which writes the row itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.game.endpoints import Access
from evennia_ai.game.limits import CallKey, StartedCall
from evennia_ai.game.retrying import until_written
from evennia_ai.game.runtime import runtime
from evennia_ai.game.stopping import ModelStopped, refuse_if_stopped
from evennia_ai.game.watching import WatchedCall
from evennia_ai.llm.chat import ChatReply, ChatRequest, Listener, Usage
from evennia_ai.llm.errors import ModelRefused, ModelRubbish, ModelTimeout, ModelUnavailable
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import ANSWERED, CANCELLED, NewCall

# The first that fits says what kind of failure it was.
_KINDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ModelStopped, "stopped"),
    (ModelTimeout, "timeout"),
    (ModelUnavailable, "unavailable"),
    (ModelRefused, "refused"),
    (ModelRubbish, "rubbish"),
)


# What is under way, by whom it is for.
_under_way: Final[dict[str, set["Call"]]] = {}


class Call:
    """One call of a model for an NPC, in a role; asked once."""

    def __init__(
        self,
        access: Access,
        *,
        npc_ref: str,
        role: str,
        name: str = "",
        player_ref: str = "",
        turn: int | None = None,
        prompt_tokens: int | None = None,
    ) -> None:
        """`prompt_tokens` are estimated where they are not known; the rest is as in `CallKey`."""
        self._access: Final = access
        self._prompt_tokens: Final = prompt_tokens
        self._key = CallKey(
            npc_ref=npc_ref,
            player_ref=player_ref,
            role=role,
            name=name,
            turn=turn,
            profile=access.profile.name,
        )
        self._first_piece_seconds: float | None = None
        self._asking: Deferred[ChatReply] | None = None
        self._given_up = ""
        self.row: NewCall | None = None
        """What is to be written down, once it has ended."""

    def ask(
        self,
        request: ChatRequest,
        *,
        listener: Listener | None = None,
        prompt: Sequence[Message] = (),
    ) -> Deferred[ChatReply]:
        """The model's reply. `prompt` are the messages before they were fitted to the model.

        It fails with ModelStopped where the NPC is paused or the game is stopped. StoreError is
        raised at once: what was used today cannot be read.
        """
        live, access = runtime(), self._access
        key = self._key_for(request)
        call = WatchedCall(key=key, endpoint=access.name, provider=access.profile.client)
        started = live.limits.begun(key)
        live.watch.asked(call, request, prompt)
        heard = None if listener is None else self._timed(listener, started.started_at)
        self._asking = maybeDeferred(self._asked, request, heard)
        _under_way.setdefault(key.npc_ref, set()).add(self)
        return self._asking.addBoth(self._ended, call, started)

    def give_up(self, why: str) -> None:
        """Have it fail with ModelStopped, if it is under way."""
        if self._asking is not None:
            self._given_up = why
            self._asking.cancel()

    def _asked(self, request: ChatRequest, listener: Listener | None) -> Deferred[ChatReply]:
        refuse_if_stopped(self._access.name, self._key.npc_ref)
        return self._access.model.complete(request, listener=listener)

    def _timed(self, listener: Listener, started_at: float) -> Listener:
        """The listener, and when it heard the first piece."""
        clock = runtime().clock

        def heard(piece: str) -> None:
            if self._first_piece_seconds is None:
                self._first_piece_seconds = max(0.0, clock.seconds() - started_at)
            listener(piece)

        return heard

    def _ended(
        self, outcome: ChatReply | Failure, call: WatchedCall, started: StartedCall
    ) -> ChatReply | Failure:
        live = runtime()
        self._forget()
        if self._given_up and isinstance(outcome, Failure):
            outcome = Failure(ModelStopped(self._access.name, self._given_up))
        self.row = row = live.limits.ended(
            started,
            _usage(outcome),
            _word(outcome),
            reply_tokens=_reply_tokens(outcome),
            first_piece_seconds=self._first_piece_seconds,
        )
        if isinstance(outcome, Failure):
            live.watch.failed(call, outcome.value, row)
        else:
            live.watch.answered(call, outcome, row)
        return outcome

    def _forget(self) -> None:
        self._asking = None
        others = _under_way[self._key.npc_ref]
        others.discard(self)
        if not others:
            del _under_way[self._key.npc_ref]

    def _key_for(self, request: ChatRequest) -> CallKey:
        tokens = self._prompt_tokens
        if tokens is None:
            tokens = sum(ESTIMATE.of_message(message.content) for message in request.messages)
        return replace(
            self._key,
            model=request.model,
            prompt_tokens=tokens,
            reply_tokens=request.max_tokens,
        )


def give_up_for(npc_ref: str, why: str) -> int:
    """Give up what is under way for an NPC; how many calls that were."""
    calls = tuple(_under_way.get(npc_ref, ()))
    for call in calls:
        call.give_up(why)
    return len(calls)


def asked(
    access: Access,
    request: ChatRequest,
    *,
    npc_ref: str,
    role: str,
    name: str = "",
    player_ref: str = "",
    prompt_tokens: int | None = None,
    prompt: Sequence[Message] = (),
) -> Deferred[ChatReply]:
    """The model's reply to a request that belongs to no turn; its row is written at its end.

    A row that cannot be written now is written later.
    """
    call = Call(
        access,
        npc_ref=npc_ref,
        role=role,
        name=name,
        player_ref=player_ref,
        prompt_tokens=prompt_tokens,
    )
    clock = runtime().clock

    def kept(outcome: ChatReply | Failure) -> ChatReply | Failure:
        if call.row is not None:
            doing = f"NPC {npc_ref}: a call of {access.name} is not written down"
            until_written(partial(model_calls.add, call.row), doing, clock=clock)
        return outcome

    return call.ask(request, prompt=prompt).addBoth(kept)


def _word(outcome: ChatReply | Failure) -> str:
    """How a call ended, as its row says it."""
    if not isinstance(outcome, Failure):
        return ANSWERED
    if outcome.check(CancelledError):
        return CANCELLED
    kind = next((word for known, word in _KINDS if outcome.check(known)), "error")
    return f"failed:{kind}"


def _usage(outcome: ChatReply | Failure) -> Usage | None:
    return None if isinstance(outcome, Failure) else outcome.usage


def _reply_tokens(outcome: ChatReply | Failure) -> int:
    """What a reply costs by our own count, for a provider that tells nothing."""
    return 0 if isinstance(outcome, Failure) else ESTIMATE.of_message(outcome.text)
