"""Fragments: expanded texts with counted tokens that ask for a place in the prompt.

A fragment is either a message of its own or a part of a shared message. Its claim says where it
asks to be placed and when the budget may leave it out.

Dialogue examples are fragments that consist of blocks. A block begins at a `<START>` marker, in
upper or lower case (Card V3, `mes_example`). The text before the first marker is a block, too. If
the budget is short, only the first blocks are kept, each as a whole, as in SillyTavern: half an
example would show the model a speaker who breaks off.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from enum import IntEnum
from itertools import groupby
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.prompt.components import DYNAMIC_ID
from evennia_ai.engine.prompt.memo import Slot, typed_frozen
from evennia_ai.engine.prompt.messages import Block, DepthCounts, Message, Part, Role
from evennia_ai.engine.prompt.tokens import SEPARATOR, TokenCounter
from evennia_ai.engine.prompt.trace import Verdict

Layout = Literal["cache", "classic"]


@typed_frozen
class SharedMessage:
    """A message of the prompt that consists of several fragments (expanded texts)."""

    key: str
    id: int
    role: Role
    block: Block
    separator: str
    """The text between two fragments."""
    name: str = ""
    """The name of the message in reports; "" uses a name made from the key."""
    head: str = ""
    """The text before all fragments."""
    tail: str = ""
    """The text after all fragments."""
    depth: int | None = None
    """The injection depth, if the message is in the history."""
    order: float = 100
    """The order among texts at that depth."""

    def __str__(self) -> str:
        return self.name or f"the message of {self.key}"


DYNAMIC: Final = SharedMessage(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator=SEPARATOR
)


class Tier(IntEnum):
    """The tiers of the budget: low tiers are admitted first, and priority decides inside a tier."""

    REQUIRED = 0
    RESERVED = 1
    FLEXIBLE = 2
    MATCHED = 3
    YIELDING = 4  # dialogue examples: they are left out before the history loses a message


# The sort key of fragments at the same place and depth: order, registry ID, key and origin.
Rank = tuple[float, int, str, str]


class Beside(NamedTuple):
    """The message of the history next to which a lore entry asks to be placed."""

    at: int | None
    """The absolute index of the message; None if there is no such message."""
    words: str
    """The reason for the trace, with `{}` as the placeholder for the message's number."""


@typed_frozen
class Claim:
    """The place, role and budget rank that a text asks for before it is expanded."""

    origin: str
    """The name of the text in the trace, such as `component:mood`."""
    id: int
    key: str
    role: Role
    depth: int | None = None
    """The injection depth; None for a place by registry ID."""
    from_oldest: bool = False
    """True if the depth is counted from the oldest kept message instead of the newest."""
    depth_counts: DepthCounts = "messages"
    order: float = 100
    """The order among texts at one depth, low values first."""
    shared: SharedMessage | None = None
    """The message that the text shares with other texts; None for a message of its own."""
    tier: Tier = Tier.FLEXIBLE
    priority: float = 100
    revision: int = 0
    stays: str = ""
    """The kind of persistent text, such as `note:0`; "" if the text does not persist."""
    beside: Beside | None = None
    """The message from which the depth was computed; None if an author chose the depth."""
    spoken_as: Role = field(init=False, compare=False)
    """The role of the message in which the text is placed."""
    rank: Rank = field(init=False, compare=False)
    """The sort key of the text among texts at the same place and depth."""

    def __post_init__(self) -> None:
        spoken_as = self.shared.role if self.shared else self.role
        object.__setattr__(self, "spoken_as", spoken_as)
        object.__setattr__(self, "rank", (self.order, self.id, self.key, self.origin))


class Fragment(NamedTuple):
    """One expanded text of the prompt, with the place it asks for, its message and its tokens."""

    claim: Claim
    message: Message
    tokens: int
    rank: Rank
    note: str = ""
    """A remark that the verdict on the fragment adds to its reason."""
    cause: str | None = None
    """The reason why the text was considered at all, such as the key that activated a lore entry.
    """
    breaks: tuple[int, ...] = ()
    """The offsets in the text at which its blocks after the first begin; () without blocks."""
    lines: tuple[tuple[Message, ...], ...] = ()
    """The messages of each block, if the text is sent as several messages."""

    @property
    def blocks(self) -> int:
        """The number of blocks in the text. The budget keeps or drops each block as a whole."""
        return len(self.lines) or len(self.breaks) + 1

    def fits(self) -> Verdict:
        """Return the budget's verdict that this fragment fits."""
        notes = [self.note] if self.note else []
        if (count := sum(map(len, self.lines))) > 1:
            notes.append(f"sent as {count} messages")
        return Verdict(
            stage="budget",
            item=self.claim.origin,
            kept=True,
            reason="; ".join(("fits", *notes)),
            tokens=self.tokens,
            cause=self.cause,
        )


def make_fragment(
    text: str,
    claim: Claim,
    *,
    counter: TokenCounter,
    content_tokens: int | None = None,
    note: str = "",
    cause: str | None = None,
    breaks: tuple[int, ...] = (),
) -> Fragment:
    """Return `text` as a fragment with its message and its tokens.

    The tokens of a fragment in a shared message are those of its text and a separator. The budget
    adds the tokens of the message itself.

    Args:
        text: The expanded text.
        claim: The place, role and budget rank that the text asks for.
        counter: The counter for tokens.
        content_tokens: The tokens of the text; None if they are not counted yet.
        note: A remark for the verdict on the fragment.
        cause: Why the text was considered at all.
        breaks: The offsets at which the blocks after the first begin.
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
        content_tokens = counter.recall(text)
    tokens = content_tokens + (counter.per_separator if claim.shared else counter.per_message)
    return Fragment(claim, message, tokens, claim.rank, note, cause, breaks)


def without_origin(made: Iterable[Fragment | Verdict], origin: str) -> list[Fragment | Verdict]:
    """Return the fragments and verdicts without those of one origin."""
    return [
        one
        for one in made
        if (one.claim.origin if isinstance(one, Fragment) else one.item) != origin
    ]


# The key of a cached token count: the number of blocks that were counted, and the counter
_Asked = tuple[int, TokenCounter]


_BLOCK_TOKENS: Final = Slot[dict[_Asked, int]]("block tokens")


_LEADING_BLOCKS: Final = Slot[tuple[_Asked, Fragment]]("leading blocks")


# Several `<START>` markers with only blanks between them begin a single block.
_MARKERS: Final = re.compile(r"(?:(?ai:<START>)\s*)+")


def block_breaks(text: str, *, filled_in: Iterable[str] = ()) -> tuple[int, ...]:
    """Return the offsets at which the blocks of dialogue examples after the first begin.

    If one of the expanded values contains a `<START>` marker, the result is (). The expanded text
    does not show where a marker came from, and a marker in a player's name must not begin a block.
    """
    if any(map(_MARKERS.search, filled_in)):
        return ()
    begin = len(text) - len(text.lstrip())
    runs = _MARKERS.finditer(text)
    return tuple(run.start() for run in runs if begin < run.start() and run.end() < len(text))


def blocks_of(fragment: Fragment) -> list[str]:
    """Return the text of each block of dialogue examples in a fragment."""
    text, ends = fragment.message.content, [*fragment.breaks, len(fragment.message.content)]
    return [text[begin:end] for begin, end in zip([0, *fragment.breaks], ends, strict=True)]


def leading_blocks(fragment: Fragment, room: int, *, counter: TokenCounter) -> Fragment | None:
    """Return `fragment` with as many whole blocks as fit; None if not even one fits.

    More `room` never gives fewer blocks, even if a counter gives a longer text fewer tokens. The
    number of blocks is found by bisection, so only a few numbers of blocks are ever counted.
    """
    if fragment.tokens <= room:
        return fragment
    counts = range(1, fragment.blocks)
    kept = bisect_right(
        counts, room, key=lambda count: block_tokens(fragment, count, counter=counter)
    )
    return _first_blocks(fragment, kept, counter) if kept else None


def block_tokens(fragment: Fragment, count: int, *, counter: TokenCounter) -> int:
    """Return the tokens of the first `count` blocks of a fragment. The result is cached."""
    if count == fragment.blocks:
        return fragment.tokens
    counted = fragment.message.memo.setdefault(_BLOCK_TOKENS, {})
    if (count, counter) not in counted:
        counted[count, counter] = _made(fragment, count, counter).tokens
    return counted[count, counter]


def _first_blocks(fragment: Fragment, count: int, counter: TokenCounter) -> Fragment:
    """Return a fragment of only the first `count` blocks. Later turns reuse it."""
    memo, asked = fragment.message.memo, (count, counter)
    known = memo.get(_LEADING_BLOCKS)
    if known is not None and known[0] == asked:
        return known[1]
    made = _made(fragment, count, counter)
    memo[_LEADING_BLOCKS] = asked, made
    return made


def _made(fragment: Fragment, count: int, counter: TokenCounter) -> Fragment:
    if fragment.lines:
        lines = fragment.lines[:count]
        tokens = sum(message.tokens(counter) for block in lines for message in block)
        return fragment._replace(lines=lines, tokens=tokens)
    text = fragment.message.content[: fragment.breaks[count - 1]].rstrip()
    breaks = fragment.breaks[: count - 1]
    made = make_fragment(
        text, fragment.claim, counter=counter, note=fragment.note, cause=fragment.cause
    )
    return made._replace(breaks=breaks)


def merge_shared(fragments: Iterable[Fragment]) -> list[tuple[int, str, Message]]:
    """Return each shared message of the fragments as one message, with its ID and key."""
    by_joint = sorted(fragments, key=_order_in_shared)
    return [
        (shared.id, shared.key, merge_fragments(shared, list(members)))
        for shared, members in groupby(by_joint, key=_shared_of)
    ]


def merge_shared_in_history(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Return the fragments, with one merged fragment for each shared message of the history.

    All fragments of such a message have the same depth. The merged fragment takes the place of the
    last of them.
    """
    by_joint = groupby(sorted(fragments, key=_order_in_shared), key=_shared_of)
    made: list[Fragment] = []
    for shared, members in by_joint:
        parts = list(members)
        made.append(
            max(parts, key=lambda fragment: fragment.rank)._replace(
                message=merge_fragments(shared, parts)
            )
        )
    return made


def merge_fragments(shared: SharedMessage, fragments: Sequence[Fragment]) -> Message:
    """Join fragments into the message that they share, in the given order."""
    parts: list[Part] = []
    texts: list[str] = []
    at = len(shared.head)
    for fragment in fragments:
        claim, message = fragment.claim, fragment.message
        text = message.content
        if message.joined:
            parts += _shift_parts(message.joined, at)
        else:
            end = at + len(text)
            parts.append(Part(origin=claim.origin, start=at, end=end, revision=claim.revision))
        texts.append(text)
        at += len(text) + len(shared.separator)
    stays = next((fragment.claim.stays for fragment in fragments if fragment.claim.stays), "")
    return Message(
        role=shared.role,
        content=f"{shared.head}{shared.separator.join(texts)}{shared.tail}",
        block=shared.block,
        injected=shared.block == "history",
        stays=stays != "",
        of=stays,
        joined=tuple(parts),
    )


def _shift_parts(parts: Iterable[Part], by: int) -> list[Part]:
    """Return the parts of a message with their offsets shifted by `by`."""
    return [replace(part, start=part.start + by, end=part.end + by) for part in parts]


def fragments_sharing(shared: SharedMessage, fragments: Iterable[Fragment]) -> list[Fragment]:
    """Return the fragments that belong to a shared message, in their order inside that message."""
    sharing = (fragment for fragment in fragments if fragment.claim.shared == shared)
    return sorted(sharing, key=_order_in_shared)


def _shared_of(fragment: Fragment) -> SharedMessage:
    assert fragment.claim.shared is not None
    return fragment.claim.shared


def _order_in_shared(fragment: Fragment) -> tuple[int, str, int, Rank]:
    shared = _shared_of(fragment)
    return shared.id, shared.key, fragment.claim.id, fragment.rank
