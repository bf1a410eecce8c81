"""Pieces: texts that want to be in the prompt, expanded and counted."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from evennia_ai.prompt.components import DYNAMIC_ID
from evennia_ai.prompt.messages import Block, Message, Part, Role
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict


class Tier(IntEnum):
    """The order in which pieces are admitted under the budget; inside a tier priority decides."""

    REQUIRED = 0
    RESERVED = 1
    FLEXIBLE = 2
    MATCHED = 3
    YIELDING = 4  # dialogue examples: they go before any history goes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """A message that several pieces share, each standing apart in it."""

    key: str
    id: int
    role: Role
    block: Block
    separator: str


DYNAMIC: Final = Joint(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator="\n\n"
)


# Order, registry ID, key, origin: the place among pieces of one slot and one depth.
Rank = tuple[float, int, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a text asks for, known before the text is: its place, its role, its survival.

    `depth` is None for a place at the ID; else it stands in the history, counted from the newest
    message, or from the oldest where `from_oldest`. `joint` is the message it shares, None for
    one of its own.
    """

    origin: str
    id: int
    key: str
    role: Role
    depth: int | None = None
    from_oldest: bool = False
    order: float = 100
    joint: Joint | None = None
    tier: Tier = Tier.FLEXIBLE
    priority: float = 100
    revision: int = 0

    @property
    def rank(self) -> Rank:
        return self.order, self.id, self.key, self.origin


@dataclass(frozen=True, slots=True)
class Piece:
    """One expanded text with its claim, its message and its cost.

    `fits` is the verdict the budget gives when it is kept.
    """

    claim: Claim
    message: Message
    tokens: int
    fits: Verdict
    rank: Rank


def make_piece(
    text: str, claim: Claim, *, counter: TokenCounter, note: str = "", cause: str | None = None
) -> Piece:
    """`text` as a piece with its message, counted with `counter`.

    `note` joins the reason of its verdict; a piece of a joint costs its text and a separator, the
    joint's message is counted apart.
    """
    origin, injected = claim.origin, claim.depth is not None
    message = Message(
        role=claim.role,
        content=text,
        block="history" if injected else "ordered",
        injected=injected,
        parts=(Part(origin=origin, start=0, end=len(text), revision=claim.revision),),
    )
    tokens = counter.count(text) + 1 if claim.joint else message.tokens(counter)
    fits = Verdict(
        stage="budget",
        item=origin,
        kept=True,
        reason=f"fits; {note}" if note else "fits",
        tokens=tokens,
        cause=cause,
    )
    return Piece(claim, message, tokens, fits, claim.rank)
