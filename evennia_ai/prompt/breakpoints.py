"""The cache account: where a provider may cache, and what the last prompt's cache is still worth.

Caches are strict prefixes: the first message that differs loses everything after it. At most two
breakpoints are used, where providers take four, and never on a message that moves at the next turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAccount:
    """What two prompts of one conversation share.

    `broken_by` is the origin of the first piece that differs, None where the older prompt is
    wholly a prefix of the newer one.
    """

    shared_messages: int
    shared_tokens: int
    broken_by: str | None


def breakpoints(messages: Sequence[Message]) -> tuple[int, ...]:
    """Indexes of messages after which a provider may cache, in order.

    The end of what stands before the history; the message before the deepest injection, because
    injections move with every turn; the last history message.
    """
    history = [i for i, message in enumerate(messages) if message.block == "history"]
    head = history[0] if history else _end_of_head(messages)
    spots = [head - 1]
    moving = next((i for i in history if messages[i].injected), None)
    if moving is not None:
        spots.append(moving - 1)
    elif history:
        spots.append(history[-1])
    return tuple(sorted({spot for spot in spots if spot >= 0}))


def account(
    older: Sequence[Message], newer: Sequence[Message], *, counter: TokenCounter
) -> CacheAccount:
    """How much of the older prompt's prefix the newer one still has."""
    shared = 0
    tokens = 0
    for before, now in zip(older, newer, strict=False):
        if before is not now and before.wire() != now.wire():
            break
        shared += 1
        tokens += now.tokens(counter)
    return CacheAccount(
        shared_messages=shared,
        shared_tokens=tokens,
        broken_by=None if shared == len(older) else _first_difference(older, newer, shared),
    )


def _first_difference(older: Sequence[Message], newer: Sequence[Message], at: int) -> str:
    message = newer[at] if at < len(newer) else older[at]
    return message.parts[0].origin if message.parts else message.block


def _end_of_head(messages: Sequence[Message]) -> int:
    """Index of the first message that is not at its ID, where there is no history."""
    return next((i for i, m in enumerate(messages) if m.block != "ordered"), len(messages))
