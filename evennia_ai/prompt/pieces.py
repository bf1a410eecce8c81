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


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One expanded text.

    `depth` is None for a piece at its ID; else it stands in the history, counted from the newest
    message, or from the oldest where `from_oldest`. `joint` is the message it shares, None for
    one of its own. `fits` is the verdict the budget gives when it is kept.
    """

    origin: str
    id: int
    key: str
    message: Message
    tokens: int
    fits: Verdict
    depth: int | None = None
    from_oldest: bool = False
    order: int = 100
    joint: Joint | None = None
    tier: Tier = Tier.FLEXIBLE
    priority: int = 100
    revision: int = 0


def make_piece(
    text: str,
    *,
    origin: str,
    component_id: int,
    key: str,
    role: Role,
    counter: TokenCounter,
    depth: int | None = None,
    from_oldest: bool = False,
    order: int = 100,
    joint: Joint | None = None,
    tier: Tier = Tier.FLEXIBLE,
    priority: int = 100,
    revision: int = 0,
    note: str = "",
    cause: str | None = None,
) -> Piece:
    """`text` as a piece with its message, counted with `counter`.

    `note` joins the reason of its verdict; a piece of a joint costs its text and a separator, the
    joint's message is counted apart.
    """
    injected = depth is not None
    message = Message(
        role=role,
        content=text,
        block="history" if injected else "ordered",
        injected=injected,
        parts=(Part(origin=origin, start=0, end=len(text), revision=revision),),
    )
    tokens = counter.count(text) + 1 if joint else message.tokens(counter)
    reason = f"fits; {note}" if note else "fits"
    return Piece(
        origin=origin,
        id=component_id,
        key=key,
        message=message,
        tokens=tokens,
        fits=Verdict(
            stage="budget", item=origin, kept=True, reason=reason, tokens=tokens, cause=cause
        ),
        depth=depth,
        from_oldest=from_oldest,
        order=order,
        joint=joint,
        tier=tier,
        priority=priority,
        revision=revision,
    )
