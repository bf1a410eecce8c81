"""Differences: what is not the same in two prompts, message by message.

Pure: texts in, lines out. Messages are paired by their bytes, so one that was put in moves none of
the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from typing import Final, Literal

from evennia_ai.prompt.messages import Message

Change = Literal["added", "removed", "changed"]
MOST_LINES: Final = 24
"""Lines of one difference that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One message that is added, removed or changed; `at` is its index, of a new one the new one.

    `lines` is a unified diff of its text, clipped.
    """

    change: Change
    at: int
    role: str
    origins: tuple[str, ...]
    lines: tuple[str, ...]


def differences(older: Sequence[Message], newer: Sequence[Message]) -> tuple[Difference, ...]:
    """What makes `newer` another prompt than `older`; nothing where they are the same bytes."""
    first = [message.wire() for message in older]
    second = [message.wire() for message in newer]
    if first == second:
        return ()
    found: list[Difference] = []
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found += _stretch(older[a:b], newer[c:d], a, c)
    return tuple(found)


def shared_messages(older: Sequence[Message], newer: Sequence[Message]) -> int:
    """How many messages at the start of both are the same bytes."""
    count = 0
    for before, now in zip(older, newer, strict=False):
        if before.wire() != now.wire():
            break
        count += 1
    return count


def _stretch(
    older: Sequence[Message], newer: Sequence[Message], at: int, newer_at: int
) -> Iterator[Difference]:
    """A stretch that differs: messages in pairs, and what one of the two has more."""
    pairs = min(len(older), len(newer))
    for index in range(pairs):
        yield _difference("changed", newer_at + index, older[index], newer[index])
    for index, message in enumerate(older[pairs:], start=pairs):
        yield _difference("removed", at + index, message, None)
    for index, message in enumerate(newer[pairs:], start=pairs):
        yield _difference("added", newer_at + index, None, message)


def _difference(change: Change, at: int, before: Message | None, now: Message | None) -> Difference:
    one = now or before
    assert one is not None  # something differs
    return Difference(
        change=change,
        at=at,
        role=one.role
        if before is None or before.role == one.role
        else f"{before.role}->{one.role}",
        origins=tuple(dict.fromkeys(part.origin for part in one.parts)),
        lines=tuple(_lines(before.content if before else "", now.content if now else "")),
    )


def _lines(before: str, now: str) -> Iterator[str]:
    diff = list(unified_diff(before.splitlines(), now.splitlines(), lineterm="", n=1))[2:]
    yield from diff[:MOST_LINES]
    if len(diff) > MOST_LINES:
        yield f"... and {len(diff) - MOST_LINES} more lines"
