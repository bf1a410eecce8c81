"""Watching: what happens to turns and calls of models, told to whoever was set up to watch.

The request log, metrics and traces are watchers. Without any nothing is made and nothing costs;
one that fails is logged and passed over: to be watched never changes a turn.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import Final, Literal

from evennia.utils import logger

from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.model_calls.limits import CallKey, Refusal
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall

TurnOutcome = Literal["answered", "failed", "dropped", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCall:
    """A call of a model; `id` is what its request and its reply have in common.

    `provider` is the kind of client that asks, `endpoint` the name of the model in our words.
    """

    key: CallKey
    endpoint: str
    provider: str
    id: str = field(default_factory=partial(token_hex, 6))

    @property
    def name(self) -> str:
        """What is asked for: "speaker", "summariser", ..."""
        return self.key.name or self.key.role


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTurn:
    """A turn that is under way: an NPC has at most one."""

    npc_ref: str
    npc_name: str
    conversation: int
    began_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkGauges:
    """How the work of workers stands."""

    workers: int
    """How many gave a sign of life lately."""
    waiting: Mapping[str, int]
    """Jobs that wait for a worker, by kind."""
    taken: Mapping[str, int]
    """Jobs that a worker does just now, by kind."""
    lag_seconds: float
    """How long the oldest waits already."""
    set_aside: int
    unsent: int
    """Jobs that wait here, as the queue is away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """How things stand: what waits, what is under way, each model's breaker, is all stopped."""

    waiting: int
    in_flight: int
    breakers: Mapping[str, str]
    is_stopped: bool
    work: WorkGauges | None = None
    """None where the game itself does what workers could."""


class Watcher:
    """Somebody who is told; each overrides what it wants to know."""

    def open(self) -> None:
        """The server has started."""

    def asked(self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message]) -> None:
        """A model is asked; `prompt` are the messages before they were fitted to it, if known."""

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """It replied."""

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """It did not, or the call was given up."""

    def turn_began(self, turn: WatchedTurn) -> None:
        """A turn begins."""

    def turn_ended(self, turn: WatchedTurn, outcome: TurnOutcome, ended_at: float) -> None:
        """A turn has ended."""

    def turn_failed(self, npc_ref: str, speaker_ref: str, error: Exception) -> None:
        """A turn that answers this speaker fails for this reason; nobody wanted it to end."""

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """A limit was reached: no turn began."""

    def dropped(self, npc_ref: str, count: int, why: str) -> None:
        """So much that waited for an answer will have none."""

    def prompted(self, turn: StoredTurn) -> None:
        """A prompt is committed; its manifest tells what it shares with the one before."""

    def close(self) -> None:
        """Nothing comes any more."""


class Watch:
    """Tells all watchers; `now` gives seconds since 1970."""

    def __init__(self, watchers: Iterable[Watcher] = (), *, now: Callable[[], float]) -> None:
        self._watchers = tuple(watchers)
        self._now: Final = now
        self._turns: Final[dict[str, WatchedTurn]] = {}

    def add(self, watcher: Watcher) -> None:
        """Tell one more, such as a game's own."""
        self._watchers = (*self._watchers, watcher)

    def asked(
        self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message] = ()
    ) -> None:
        """A model is asked."""
        self._tell(lambda watcher: watcher.asked(call, request, prompt))

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """It replied."""
        self._tell(lambda watcher: watcher.answered(call, reply, row))

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """It did not reply."""
        self._tell(lambda watcher: watcher.failed(call, error, row))

    def turn_began(self, npc_ref: str, *, npc_name: str, conversation: int) -> None:
        """A turn of the NPC begins; `conversation` is the number of the one it is in."""
        if self._watchers:
            turn = WatchedTurn(
                npc_ref=npc_ref,
                npc_name=npc_name,
                conversation=conversation,
                began_at=self._now(),
            )
            self._turns[npc_ref] = turn
            self._tell(lambda watcher: watcher.turn_began(turn))

    def turn_ended(self, npc_ref: str, outcome: TurnOutcome) -> None:
        """The turn of the NPC has ended; one that did not begin tells nobody."""
        turn = self._turns.pop(npc_ref, None)
        if turn is not None:
            now = self._now()
            self._tell(lambda watcher: watcher.turn_ended(turn, outcome, now))

    def turn_failed(self, npc_ref: str, *, speaker_ref: str, error: Exception) -> None:
        """Tell that a turn fails; `speaker_ref` is "" where nobody spoke."""
        self._tell(lambda watcher: watcher.turn_failed(npc_ref, speaker_ref, error))

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """A limit was reached."""
        self._tell(lambda watcher: watcher.refused(npc_ref, refusal))

    def dropped(self, npc_ref: str, *, count: int, why: str) -> None:
        """So much that waited for an answer will have none."""
        if count:
            self._tell(lambda watcher: watcher.dropped(npc_ref, count, why))

    def prompted(self, turn: StoredTurn) -> None:
        """A prompt is committed."""
        self._tell(lambda watcher: watcher.prompted(turn))

    def open(self) -> None:
        """The server has started."""
        self._tell(lambda watcher: watcher.open())

    def close(self) -> None:
        """Nothing comes any more."""
        self._tell(lambda watcher: watcher.close())

    def _tell(self, tell: Callable[[Watcher], None]) -> None:
        for watcher in self._watchers:
            try:
                tell(watcher)
            except Exception as error:  # a watcher is somebody else's library
                kind = type(watcher).__name__
                logger.log_err(f"evennia_ai: {kind} could not tell what happened: {error!r}")
