"""Turn-taking: who of several NPCs answers one utterance, and in which order.

Pure. Those who are meant all answer, as they are named. Of the others at most one does: the one who
was last in conversation with the speaker; else one who answers everybody, the talkative rather
than the quiet; else one whose decider says so.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from evennia_ai.game.addressing import Claim

MOST_ASKED: Final = 3
"""How many deciders are asked about one utterance."""

_TAKEN: Final = "somebody else answers"
_OTHERS_ASKED: Final = "others were asked whether they answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bid:
    """One NPC that may answer; `npc_ref` is its own among those of an utterance.

    `engaged_at` is when it was last addressed by the speaker, `spoke_at` when it last said
    anything; both in seconds of one clock. `roll` is from 0 to 1.
    """

    npc_ref: str
    claim: Claim
    named_at: int = 0
    engaged_at: float = 0.0
    talkativeness: float = 0.5
    roll: float = 0.5
    spoke_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Who answers, one after the other; whose deciders are asked; who is silent and why.

    Each bid is in one of the three.
    """

    speak: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)


def decision_on(bids: Sequence[Bid]) -> Decision:
    """Who of those who bid answers."""
    meant = [bid for bid in bids if bid.claim is Claim.MEANT]
    if meant:
        return _speaking(sorted(meant, key=lambda bid: (bid.named_at, bid.npc_ref)), bids)
    engaged = [bid for bid in bids if bid.claim is Claim.ENGAGED]
    if engaged:
        newest = max(bid.engaged_at for bid in engaged)
        return _speaking(preferred(bid for bid in engaged if bid.engaged_at == newest)[:1], bids)
    willing = [bid for bid in bids if bid.claim is Claim.WILLING]
    if willing:
        return _speaking(preferred(willing)[:1], bids)
    return _asking([bid for bid in bids if bid.claim is Claim.UNDECIDED], bids)


def preferred(bids: Iterable[Bid]) -> list[Bid]:
    """Those who talk rather than the others first.

    First those whose talkativeness is over their roll, by how much; then the rest, whoever was
    silent longest first, and last those who never talk by themselves.
    """
    return sorted(bids, key=_preference)


def roll_of(*seed: object) -> float:
    """A number from 0 up to 1, the same for the same seed."""
    digest = hashlib.sha256("/".join(map(str, seed)).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _preference(bid: Bid) -> tuple[object, ...]:
    if bid.talkativeness > bid.roll:
        return (0, bid.roll - bid.talkativeness, bid.npc_ref)
    return (1, bid.talkativeness == 0, bid.spoke_at, bid.npc_ref)


def _speaking(speak: Sequence[Bid], bids: Sequence[Bid]) -> Decision:
    chosen = tuple(bid.npc_ref for bid in speak)
    silent = {bid.npc_ref: _TAKEN for bid in bids if bid.npc_ref not in chosen}
    return Decision(speak=chosen, silent=silent)


def _asking(undecided: Sequence[Bid], bids: Sequence[Bid]) -> Decision:
    asked = tuple(bid.npc_ref for bid in preferred(undecided)[:MOST_ASKED])
    silent = {bid.npc_ref: _OTHERS_ASKED for bid in bids if bid.npc_ref not in asked}
    return Decision(ask=asked, silent=silent)
