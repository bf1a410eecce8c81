"""Fragments: texts that want to be in the prompt, expanded and counted; dialogue examples in blocks.

A block of examples begins at a `<START>` marker, in upper or lower case (Card V3, `mes_example`);
what stands before the first marker is a block too. Where the budget is short, whole blocks are kept
from the first on, as SillyTavern does: half an example shows a model a speaker who breaks off.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
    """A message that several fragments share, each standing apart in it; `name` is for people.

    `head` and `tail` stand around all of them. `depth` is where it stands in the history by a
    component's depth, with its `order` there.
    """

    key: str
    id: int
    role: Role
    block: Block
    separator: str
    name: str = ""
    head: str = ""
    tail: str = ""
    depth: int | None = None
    order: float = 100

    def __str__(self) -> str:
        return self.name or f"the message of {self.key}"


DYNAMIC: Final = SharedMessage(
    key="dynamic_context", id=DYNAMIC_ID, role="user", block="dynamic", separator=SEPARATOR
)


class Tier(IntEnum):
    """The order in which fragments are admitted under the budget; inside a tier priority decides."""

    REQUIRED = 0
    RESERVED = 1
    FLEXIBLE = 2
    MATCHED = 3
    YIELDING = 4  # dialogue examples: they go before any history goes


# Order, registry ID, key, origin: the place among fragments of one slot and one depth.
Rank = tuple[float, int, str, str]


class Beside(NamedTuple):
    """The message beside which a text stands, by its absolute index; None where there is none.

    `words` have `{}` where that message is named.
    """

    at: int | None
    words: str


@typed_frozen
class Claim:
    """What a text asks for, known before the text is: its place, its role, its survival.

    `depth` is None for a place at the ID; else it stands in the history, counted from the newest
    message, or from the oldest where `from_oldest`. `shared` is the message it shares, None for
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
    depth_counts: DepthCounts = "messages"
    order: float = 100
    shared: SharedMessage | None = None
    tier: Tier = Tier.FLEXIBLE
    priority: float = 100
    revision: int = 0
    stays: str = ""
    beside: Beside | None = None

    @property
    def spoken_as(self) -> Role:
        """The role of the message that it stands in."""
        return self.shared.role if self.shared else self.role

    @property
    def rank(self) -> Rank:
        return self.order, self.id, self.key, self.origin


class Fragment(NamedTuple):
    """One expanded text with its claim, its message and its cost.

    `note` joins the reason of its verdict; `cause` is what brought it here. `breaks` are the
    offsets at which a text that yields may end: where its blocks after the first one begin.
    `lines` are the messages of each block where it is sent as several, () where it is one.
    """

    claim: Claim
    message: Message
    tokens: int
    rank: Rank
    note: str = ""
    cause: str | None = None
    breaks: tuple[int, ...] = ()
    lines: tuple[tuple[Message, ...], ...] = ()

    @property
    def blocks(self) -> int:
        """How many parts it has that are kept or left out whole."""
        return len(self.lines) or len(self.breaks) + 1

    def fits(self) -> Verdict:
        """The budget's verdict when it is kept; worked out when somebody asks."""
        told = [self.note] if self.note else []
        if (count := sum(map(len, self.lines))) > 1:
            told.append(f"sent as {count} messages")
        return Verdict(
            stage="budget",
            item=self.claim.origin,
            kept=True,
            reason="; ".join(("fits", *told)),
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
    """`text` as a fragment with its message, counted with `counter` where its tokens are not known.

    A fragment of a shared costs its text and a separator; the shared's message is counted apart.
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
    """The fragments and verdicts of all other origins."""
    return [
        one
        for one in made
        if (one.claim.origin if isinstance(one, Fragment) else one.item) != origin
    ]


# How many of the first blocks, counted by what.
_Asked = tuple[int, TokenCounter]


_BLOCK_TOKENS: Final = Slot[dict[_Asked, int]]("block tokens")


_LEADING_BLOCKS: Final = Slot[tuple[_Asked, Fragment]]("leading blocks")


# Markers with nothing between them begin one block together.
_MARKERS: Final = re.compile(r"(?:(?ai:<START>)\s*)+")


def block_breaks(text: str, *, filled_in: Iterable[str] = ()) -> tuple[int, ...]:
    """Where the blocks of `text` after the first one begin.

    None where a value that was filled in has a marker of its own: what a player is called is no
    markup, and in the text nobody can tell whose marker it is.
    """
    if any(map(_MARKERS.search, filled_in)):
        return ()
    begin = len(text) - len(text.lstrip())
    runs = _MARKERS.finditer(text)
    return tuple(run.start() for run in runs if begin < run.start() and run.end() < len(text))


def blocks_of(fragment: Fragment) -> list[str]:
    """The blocks of its text, the first one as far as the first marker that begins another."""
    text, ends = fragment.message.content, [*fragment.breaks, len(fragment.message.content)]
    return [text[begin:end] for begin, end in zip([0, *fragment.breaks], ends, strict=True)]


def leading_blocks(fragment: Fragment, room: int, *, counter: TokenCounter) -> Fragment | None:
    """`fragment` with as many whole blocks as `room` tokens hold, None where not even one fits.

    More room never holds fewer, even where a counter counts a longer text as less: two searches
    ask for the same blocks until one of them has room for more.
    """
    if fragment.tokens <= room:
        return fragment
    counts = range(1, fragment.blocks)
    kept = bisect_right(
        counts, room, key=lambda count: block_tokens(fragment, count, counter=counter)
    )
    return _first_blocks(fragment, kept, counter) if kept else None


def block_tokens(fragment: Fragment, count: int, *, counter: TokenCounter) -> int:
    """What `fragment` costs with its first `count` blocks only; counted once, kept."""
    if count == fragment.blocks:
        return fragment.tokens
    counted = fragment.message.memo.setdefault(_BLOCK_TOKENS, {})
    if (count, counter) not in counted:
        counted[count, counter] = _made(fragment, count, counter).tokens
    return counted[count, counter]


def _first_blocks(fragment: Fragment, count: int, counter: TokenCounter) -> Fragment:
    """The fragment with its first `count` blocks: the same object while they are what has room."""
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
    """One message for each shared, its fragments in the order of their ID, order and place of birth."""
    by_joint = sorted(fragments, key=_order_in_shared)
    return [
        (shared.id, shared.key, merge_fragments(shared, list(members)))
        for shared, members in groupby(by_joint, key=_shared_of)
    ]


def merge_shared_in_history(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Fragments that share a message inside the history, as one fragment with that message.

    They have one depth; the message ranks where the last of them would.
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
    """The message that `fragments` share, in their given order, with a part for each."""
    parts: list[Part] = []
    texts: list[str] = []
    at = len(shared.head)
    for fragment in fragments:
        claim, message = fragment.claim, fragment.message
        text = message.content
        if message.joined:
            parts += _moved(message.joined, at)
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


def _moved(parts: Iterable[Part], by: int) -> list[Part]:
    """The parts of a text that stands so much further on in another one."""
    return [replace(part, start=part.start + by, end=part.end + by) for part in parts]


def fragments_sharing(shared: SharedMessage, fragments: Iterable[Fragment]) -> list[Fragment]:
    """The fragments that share this message, in the order they have in it."""
    sharing = (fragment for fragment in fragments if fragment.claim.shared == shared)
    return sorted(sharing, key=_order_in_shared)


def _shared_of(fragment: Fragment) -> SharedMessage:
    assert fragment.claim.shared is not None
    return fragment.claim.shared


def _order_in_shared(fragment: Fragment) -> tuple[int, str, int, Rank]:
    shared = _shared_of(fragment)
    return shared.id, shared.key, fragment.claim.id, fragment.rank
