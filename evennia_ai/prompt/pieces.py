"""Pieces: texts that want to be in the prompt, expanded and counted."""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, NamedTuple

from evennia_ai.prompt.components import DYNAMIC_ID
from evennia_ai.prompt.messages import Block, Message, Role
from evennia_ai.prompt.tokens import SEPARATOR, TokenCounter
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
    """A message that several pieces share, each standing apart in it; `name` is for people."""

    key: str
    id: int
    role: Role
    block: Block
    separator: str
    name: str = ""

    def __str__(self) -> str:
        return self.name or f"the message of {self.key}"


DYNAMIC: Final = Joint(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator=SEPARATOR
)


# Order, registry ID, key, origin: the place among pieces of one slot and one depth.
Rank = tuple[float, int, str, str]


class Beside(NamedTuple):
    """The message beside which a text stands, by its absolute index; None where there is none.

    `words` have `{}` where that message is named.
    """

    at: int | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a text asks for, known before the text is: its place, its role, its survival.

    `depth` is None for a place at the ID; else it stands in the history, counted from the newest
    message, or from the oldest where `from_oldest`. `joint` is the message it shares, None for
    one of its own. `beside` is the message that its depth is that of, None where it is a
    depth that was asked for. `stays` is what it is of where it remains in the history, "" where it
    does not.
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
    stays: str = ""
    beside: Beside | None = None

    @property
    def spoken_as(self) -> Role:
        """The role of the message that it stands in."""
        return self.joint.role if self.joint else self.role

    @property
    def rank(self) -> Rank:
        return self.order, self.id, self.key, self.origin


class Piece(NamedTuple):
    """One expanded text with its claim, its message and its cost.

    `note` joins the reason of its verdict; `cause` is what brought it here. `breaks` are the
    offsets at which a text that yields may end: where its blocks after the first one begin.
    """

    claim: Claim
    message: Message
    tokens: int
    rank: Rank
    note: str = ""
    cause: str | None = None
    breaks: tuple[int, ...] = ()

    @property
    def blocks(self) -> int:
        """How many parts it has that are kept or left out whole."""
        return len(self.breaks) + 1

    def fits(self) -> Verdict:
        """The budget's verdict when it is kept; worked out when somebody asks."""
        return Verdict(
            stage="budget",
            item=self.claim.origin,
            kept=True,
            reason=f"fits; {self.note}" if self.note else "fits",
            tokens=self.tokens,
            cause=self.cause,
        )


def make_piece(
    text: str,
    claim: Claim,
    *,
    counter: TokenCounter,
    content_tokens: int | None = None,
    note: str = "",
    cause: str | None = None,
    breaks: tuple[int, ...] = (),
) -> Piece:
    """`text` as a piece with its message, counted with `counter` where its tokens are not known.

    A piece of a joint costs its text and a separator; the joint's message is counted apart.
    """
    injected = claim.depth is not None
    message = Message(
        role=claim.role,
        content=text,
        block="history" if injected else "ordered",
        injected=injected,
        origin=claim.origin,
        revision=claim.revision,
    )
    if claim.stays:
        block = message.block if injected else "dynamic"
        message = replace(message, block=block, stays=True, of=claim.stays)
    if content_tokens is None:
        content_tokens = counter.count(text)
    tokens = content_tokens + (counter.per_separator if claim.joint else counter.per_message)
    return Piece(claim, message, tokens, claim.rank, note, cause, breaks)
