"""Bidding: NPCs that may answer the same utterance bid for the floor, which is the right to answer.

All listeners bid when their events are committed. Then the decision follows. All NPCs who are meant
answer, in the order in which they are named. Each waits until the one before has finished, so that
it has heard that answer. Of the others at most one answers: the NPC that was last in conversation
with the speaker, else one that answers everybody (talkative ones first), else one whose decider
agrees. `decision_on` is a pure function.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.npc.floor.addressing import Addressed
from evennia_ai.npc.senses.events import Chains, Event, utterance_key
from evennia_ai.services.llm.resilience import Clock

MOST_ASKED: Final = 3
"""The most deciders that are asked about one utterance."""

_TAKEN: Final = "somebody else answers"
_OTHERS_ASKED: Final = "others were asked whether they answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """The bid of one NPC that may answer an utterance.

    `engaged_at` is when the speaker last addressed the NPC, `spoke_at` when the NPC last said
    anything, both in seconds of the same clock. `roll` is a random number from 0 to 1.
    """

    npc_ref: str
    claim: Addressed
    named_at: int = 0
    engaged_at: float = 0.0
    talkativeness: float = 0.5
    roll: float = 0.5
    spoke_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorDecision:
    """The decision which of several NPCs answer a line. Each NPC is in exactly one field.

    `speak` has the NPCs that answer, in order. `ask` has those whose decider must be asked first.
    `silent` has the others, with the reasons.
    """

    speak: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


def decision_on(bids: Sequence[Bid]) -> FloorDecision:
    """Decide which of the bidding NPCs answer. The order of the bids does not matter."""
    meant = [bid for bid in bids if bid.claim is Addressed.MEANT]
    if meant:
        return _decide_speakers(sorted(meant, key=lambda bid: (bid.named_at, bid.npc_ref)), bids)
    engaged = [bid for bid in bids if bid.claim is Addressed.ENGAGED]
    if engaged:
        newest = max(bid.engaged_at for bid in engaged)
        return _decide_speakers(
            sort_by_preference(bid for bid in engaged if bid.engaged_at == newest)[:1], bids
        )
    willing = [bid for bid in bids if bid.claim is Addressed.WILLING]
    if willing:
        return _decide_speakers(sort_by_preference(willing)[:1], bids)
    return _decide_asked([bid for bid in bids if bid.claim is Addressed.UNDECIDED], bids)


def sort_by_preference(bids: Iterable[Bid]) -> list[Bid]:
    """Sort bids so that the NPC that should most likely answer comes first.

    First come those whose talkativeness exceeds their roll, the largest difference first. Then come
    the others, those who have been silent longest first. Those with talkativeness 0 come last.
    """
    return sorted(bids, key=_preference)


def roll_of(*seed: object) -> float:
    """Return a number from 0 up to 1 that depends only on the seed."""
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _preference(bid: Bid) -> tuple[object, ...]:
    if bid.talkativeness > bid.roll:
        return (0, bid.roll - bid.talkativeness, bid.npc_ref)
    return (1, bid.talkativeness == 0, bid.spoke_at, bid.npc_ref)


def _decide_speakers(speak: Sequence[Bid], bids: Sequence[Bid]) -> FloorDecision:
    chosen = tuple(bid.npc_ref for bid in speak)
    silent = {bid.npc_ref: _TAKEN for bid in bids if bid.npc_ref not in chosen}
    return FloorDecision(speak=chosen, silent=silent)


def _decide_asked(undecided: Sequence[Bid], bids: Sequence[Bid]) -> FloorDecision:
    asked = tuple(bid.npc_ref for bid in sort_by_preference(undecided)[:MOST_ASKED])
    silent = {bid.npc_ref: _OTHERS_ASKED for bid in bids if bid.npc_ref not in asked}
    return FloorDecision(ask=asked, silent=silent)


PATIENCE_SECONDS: Final = 30.0
"""How long the next NPC waits at most for the answer of the one before."""

YES_OF_ANOTHER: Final = "somebody else decided to answer first"


class Bidder(Protocol):
    """An NPC that may answer one utterance.

    Either `speak` or `keep_silent` is called, exactly once. Before that, `decide` may be called.
    """

    def speak(self, *, ended: Callable[[], None] | None = None) -> None:
        """Answer now. Call `ended` once the answer has ended or cannot come any longer."""

    def keep_silent(self, why: str) -> None:
        """Do not answer. `why` is the reason."""

    def decide(self) -> "Deferred[str]":
        """Ask the NPC's decider. Return a Deferred with the reason not to answer, "" to answer.

        The Deferred is cancelled if another NPC answers.
        """


class Floors:
    """The utterances of this moment, each with the bids of its listeners."""

    def __init__(
        self,
        clock: Clock,
        *,
        when_committed: Callable[[Callable[[], None]], None],
        hop_seconds: float,
    ) -> None:
        """Start without bids.

        Args:
            when_committed: Calls a function once everything that was heard so far is committed.
        """
        self._clock: Final = clock
        self._when_committed: Final = when_committed
        self.chains: Final = Chains(seconds=clock.seconds, budget_seconds=hop_seconds)
        self._open: dict[tuple[str, ...], dict[str, tuple[Bid, Bidder]]] = {}
        self._full: list[dict[str, tuple[Bid, Bidder]]] = []
        self._is_planned = False

    def bid(self, event: Event, bid: Bid, bidder: Bidder) -> None:
        """Add a bid for the utterance of `event`.

        A second bid of the same NPC means that the words were said again, so it opens a new floor.
        """
        key = utterance_key(event)
        floor = self._open.setdefault(key, {})
        if bid.npc_ref in floor:
            self._full.append(floor)
            floor = self._open[key] = {}
        floor[bid.npc_ref] = (bid, bidder)
        if not self._is_planned:
            self._is_planned = True
            self._when_committed(self._decide)

    def close(self) -> None:
        """Drop all bids."""
        self._open.clear()
        self._full.clear()

    def _decide(self) -> None:
        self._is_planned = False
        floors = [*self._full, *self._open.values()]
        self._open, self._full = {}, []
        for floor in floors:
            self._give_floor(floor)

    def _give_floor(self, floor: dict[str, tuple[Bid, Bidder]]) -> None:
        bidders = {ref: bidder for ref, (_, bidder) in floor.items()}
        decision = decision_on([bid for bid, _ in floor.values()])
        for ref, why in decision.silent.items():
            bidders[ref].keep_silent(why)
        if decision.ask:
            _AskedDeciders([bidders[ref] for ref in decision.ask]).ask()
        self._speak_in_turn([bidders[ref] for ref in decision.speak])

    def _speak_in_turn(self, bidders: Sequence[Bidder]) -> None:
        """Let the first NPC answer, and the next when that answer has ended or takes too long."""
        if not bidders:
            return
        first, *others = bidders
        following = partial(self._speak_in_turn, others)
        if not others:
            first.speak()
            return
        patience = self._clock.callLater(PATIENCE_SECONDS, following)

        def ended() -> None:
            if patience.active():
                patience.cancel()
                following()

        first.speak(ended=ended)


class _AskedDeciders:
    """The deciders that were asked about one utterance.

    The first that agrees lets its NPC answer.
    """

    def __init__(self, bidders: Sequence[Bidder]) -> None:
        self._bidders: Final = bidders
        self._asked: list[Deferred[str]] = []
        self._is_taken = False

    def ask(self) -> None:
        for bidder in self._bidders:
            if self._is_taken:
                bidder.keep_silent(YES_OF_ANOTHER)
                continue
            asked = bidder.decide()
            self._asked.append(asked)
            asked.addCallbacks(
                self._decided, self._failed, callbackArgs=(bidder,), errbackArgs=(bidder,)
            )

    def _decided(self, why_not: str, bidder: Bidder) -> None:
        if self._is_taken or why_not:
            bidder.keep_silent(why_not or YES_OF_ANOTHER)
            return
        self._is_taken = True
        for other in self._asked:
            other.cancel()
        bidder.speak()

    def _failed(self, failure: Failure, bidder: Bidder) -> None:
        if not failure.check(CancelledError):
            logger.log_err(f"evennia_ai: asking a decider failed: {failure.getErrorMessage()}")
        why = YES_OF_ANOTHER if self._is_taken else failure.getErrorMessage()
        bidder.keep_silent(why)
