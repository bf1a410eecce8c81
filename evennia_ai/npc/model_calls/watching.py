"""Watching: reports turns and calls of models to watchers.

The request log, metrics and traces are watchers. Without watchers, no reports are made. An error of
a watcher is logged and does not affect the turn.
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
from evennia_ai.services.llm.odd_replies import Oddity
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall

TurnOutcome = Literal["answered", "failed", "dropped", "refused", "withheld"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedCall:
    """A call of a model, as it is reported to watchers such as logs and metrics.

    The request and its reply are reported with the same `id`. `provider` is the kind of client, and
    `endpoint` is the name of the model in this package.
    """

    key: CallKey
    endpoint: str
    provider: str
    id: str = field(default_factory=partial(token_hex, 6))

    @property
    def name(self) -> str:
        """Return what the call is for, such as "speaker" or "summariser"."""
        return self.key.name or self.key.role


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedTurn:
    """A running turn in reports. An NPC has at most one."""

    npc_ref: str
    npc_name: str
    conversation: int
    began_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkGauges:
    """The number of jobs and workers, for metrics."""

    workers: int
    """The number of workers with a recent heartbeat."""
    waiting: Mapping[str, int]
    """The number of jobs that wait for a worker, by kind."""
    taken: Mapping[str, int]
    """The number of jobs that a worker is doing, by kind."""
    lag_seconds: float
    """How long the oldest job has waited."""
    set_aside: int
    unsent: int
    """The number of jobs that wait in this process, because the queue cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """The state of the game for metrics: waiting and running turns, breakers, and stops."""

    waiting: int
    in_flight: int
    breakers: Mapping[str, str]
    is_stopped: bool
    work: WorkGauges | None = None
    """The state of background jobs, None if the game has no workers."""


class Watcher:
    """The base class of watchers. A subclass overrides the methods that it needs."""

    def open(self) -> None:
        """Start to watch, for example open a file. Called when the server has started."""

    def asked(self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message]) -> None:
        """Called when a model is asked.

        `prompt` has the messages before they were adapted to it.
        """

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Called when a model replied."""

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """Called when a call failed or was cancelled."""

    def odd_reply(self, model: str, odd: Sequence[Oddity]) -> None:
        """Called when a reply of this model to a turn was odd."""

    def turn_began(self, turn: WatchedTurn) -> None:
        """Called when a turn begins."""

    def turn_ended(self, turn: WatchedTurn, outcome: TurnOutcome, ended_at: float) -> None:
        """Called when a turn has ended."""

    def turn_failed(self, npc_ref: str, speaker_ref: str, error: Exception) -> None:
        """Called when an answer to this speaker fails with an error."""

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """Called when a limit was reached, so that no turn began."""

    def withheld(self, npc_ref: str, side: str, reason: str) -> None:
        """Called when the game's filter withheld words: "heard" of players, "said" of models."""

    def dropped(self, npc_ref: str, count: int, why: str) -> None:
        """Called when `count` pending answers were dropped."""

    def prompted(self, turn: StoredTurn) -> None:
        """Called when a prompt was committed. Its manifest compares it with the prompt before."""

    def close(self) -> None:
        """Called when the server stops."""


class Watch:
    """Passes each report to all watchers. `now` returns seconds since 1970."""

    def __init__(self, watchers: Iterable[Watcher] = (), *, now: Callable[[], float]) -> None:
        self._watchers = tuple(watchers)
        self._now: Final = now
        self._turns: Final[dict[str, WatchedTurn]] = {}

    def add(self, watcher: Watcher) -> None:
        """Add a watcher, for example one that the game provides."""
        self._watchers = (*self._watchers, watcher)

    def asked(
        self, call: WatchedCall, request: ChatRequest, prompt: Sequence[Message] = ()
    ) -> None:
        """Report that a model is asked."""
        self._tell(lambda watcher: watcher.asked(call, request, prompt))

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Report that a model replied."""
        self._tell(lambda watcher: watcher.answered(call, reply, row))

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """Report that a call failed or was cancelled."""
        self._tell(lambda watcher: watcher.failed(call, error, row))

    def odd_reply(self, model: str, odd: Sequence[Oddity]) -> None:
        """Report that a reply of a model to a turn was odd."""
        self._tell(lambda watcher: watcher.odd_reply(model, odd))

    def turn_began(self, npc_ref: str, *, npc_name: str, conversation: int) -> None:
        """Report that a turn of the NPC begins. `conversation` is the id of its conversation."""
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
        """Report that the NPC's turn has ended. If its beginning was not reported, do nothing."""
        turn = self._turns.pop(npc_ref, None)
        if turn is not None:
            now = self._now()
            self._tell(lambda watcher: watcher.turn_ended(turn, outcome, now))

    def turn_failed(self, npc_ref: str, *, speaker_ref: str, error: Exception) -> None:
        """Report that a turn failed with an error. `speaker_ref` is "" if nobody spoke."""
        self._tell(lambda watcher: watcher.turn_failed(npc_ref, speaker_ref, error))

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """Report that a limit was reached, so that no turn began."""
        self._tell(lambda watcher: watcher.refused(npc_ref, refusal))

    def withheld(self, npc_ref: str, *, side: str, reason: str) -> None:
        """Report that the game's filter withheld words."""
        self._tell(lambda watcher: watcher.withheld(npc_ref, side, reason))

    def dropped(self, npc_ref: str, *, count: int, why: str) -> None:
        """Report that `count` pending answers were dropped. If it is 0, do nothing."""
        if count:
            self._tell(lambda watcher: watcher.dropped(npc_ref, count, why))

    def prompted(self, turn: StoredTurn) -> None:
        """Report that a prompt was committed."""
        self._tell(lambda watcher: watcher.prompted(turn))

    def open(self) -> None:
        """Report that the server has started."""
        self._tell(lambda watcher: watcher.open())

    def close(self) -> None:
        """Report that the server stops."""
        self._tell(lambda watcher: watcher.close())

    def _tell(self, tell: Callable[[Watcher], None]) -> None:
        for watcher in self._watchers:
            try:
                tell(watcher)
            except Exception as error:  # a watcher may be foreign code and raise anything
                kind = type(watcher).__name__
                logger.log_err(f"evennia_ai: the watcher {kind} raised an error: {error!r}")
