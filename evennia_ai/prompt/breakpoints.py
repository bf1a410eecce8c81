"""The cache account: where a provider may cache, and what the last prompt's cache is still worth.

Caches are strict prefixes: the first message that differs loses everything after it. At most four
breakpoints are used, as many as providers take, never on a message that moves at the next turn.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evennia_ai.prompt.breaks import Reason, Sent, first_break
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheAccount:
    """What two prompts of one conversation share.

    `broken_by` is the origin of the first piece that differs, None where the older prompt is
    wholly a prefix of the newer one; `reason` is why, None where that is not known.
    """

    shared_messages: int
    shared_tokens: int
    broken_by: str | None
    reason: Reason | None = None


def breakpoints(
    messages: Sequence[Message],
    *,
    anchored: Collection[str] = (),
    behind: Collection[str] = (),
) -> tuple[int, ...]:
    """Indexes of messages after which a provider may cache, in order.

    The end of what stands before the history; the message before the first anchored note, for the
    day it moves; the message before the deepest injection that floats, because that moves with
    every turn, or else the last history message, and the newest text that stays right after it.
    `anchored` are the origins of notes that do not float, `behind` those of what stands at an ID
    behind the history.
    """
    history = [i for i, message in enumerate(messages) if message.block == "history"]
    head = history[0] if history else _end_of_head(messages, behind)
    fixed = [i for i in history if _is_of(messages[i], anchored)] if anchored else []
    spots = [head - 1]
    moving = next((i for i in history if i not in fixed and _floats(messages[i])), None)
    if fixed and (moving is None or fixed[0] < moving):
        spots.append(fixed[0] - 1)
    if moving is not None:
        spots.append(moving - 1)
    elif history:
        spots += [history[-1], _last_staying(messages, history[-1])]
    else:
        spots.append(_last_staying(messages, head - 1))
    return tuple(sorted({spot for spot in spots if spot >= 0}))


def account(
    older: Sent | Sequence[Message],
    newer: Sent,
    *,
    counter: TokenCounter,
    components: ComponentSet,
) -> CacheAccount:
    """How much of the older prompt's prefix the newer one still has, and what broke it.

    Of bare messages nobody can tell why they differ.
    """
    sent = older if isinstance(older, Sent) else Sent(messages=older)
    shared = 0
    tokens = 0
    for before, now in zip(sent.messages, newer.messages, strict=False):
        if before is not now and before.wire() != now.wire():
            break
        shared += 1
        tokens += now.tokens(counter)
    found = first_break(sent, newer, at=shared, components=components)
    return CacheAccount(
        shared_messages=shared,
        shared_tokens=tokens,
        broken_by=found.origin,
        reason=found.reason if sent is older or found.reason == "append" else None,
    )


def _is_of(message: Message, origins: Collection[str]) -> bool:
    return message.injected and any(part.origin in origins for part in message.parts)


def _floats(message: Message) -> bool:
    return message.injected and not message.stays


def _last_staying(messages: Sequence[Message], at: int) -> int:
    """Index of the last of the texts that stay right after the message `at`, or `at` itself."""
    while at + 1 < len(messages) and messages[at + 1].stays:
        at += 1
    return at


def _end_of_head(messages: Sequence[Message], behind: Collection[str]) -> int:
    """Index of the first message that would stand behind a history, where there is none."""
    for index, message in enumerate(messages):
        if message.block != "ordered" or message.parts[0].origin in behind:
            return index
    return len(messages)
