"""Dialogue examples: where their blocks begin, and how many of them a room holds.

A block begins at a `<START>` marker, in upper or lower case (Card V3, `mes_example`); what stands
before the first marker is a block too. Where the budget is short, whole blocks are kept from the
first on, as SillyTavern does: half an example shows a model a speaker who breaks off.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.pieces import Piece, make_piece
from evennia_ai.prompt.tokens import TokenCounter

# Markers with nothing between them begin one block together.
# How many of the first blocks, counted by what.
_Asked = tuple[int, TokenCounter]
_BLOCK_TOKENS: Final = Slot[dict[_Asked, int]]("block tokens")
_LEADING_BLOCKS: Final = Slot[tuple[_Asked, Piece]]("leading blocks")
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


def leading_blocks(piece: Piece, room: int, *, counter: TokenCounter) -> Piece | None:
    """`piece` with as many whole blocks as `room` tokens hold, None where not even one fits.

    More room never holds fewer, even where a counter counts a longer text as less: two searches
    ask for the same blocks until one of them has room for more.
    """
    if piece.tokens <= room:
        return piece
    counts = range(1, piece.blocks)
    kept = bisect_right(counts, room, key=lambda count: block_tokens(piece, count, counter=counter))
    return _first_blocks(piece, kept, counter) if kept else None


def block_tokens(piece: Piece, count: int, *, counter: TokenCounter) -> int:
    """What `piece` costs with its first `count` blocks only; counted once, kept."""
    if count == piece.blocks:
        return piece.tokens
    counted = piece.message.memo.setdefault(_BLOCK_TOKENS, {})
    if (count, counter) not in counted:
        counted[count, counter] = _made(piece, count, counter).tokens
    return counted[count, counter]


def _first_blocks(piece: Piece, count: int, counter: TokenCounter) -> Piece:
    """The piece with its first `count` blocks: the same object while they are what has room."""
    memo, asked = piece.message.memo, (count, counter)
    known = memo.get(_LEADING_BLOCKS)
    if known is not None and known[0] == asked:
        return known[1]
    made = _made(piece, count, counter)
    memo[_LEADING_BLOCKS] = asked, made
    return made


def _made(piece: Piece, count: int, counter: TokenCounter) -> Piece:
    text = piece.message.content[: piece.breaks[count - 1]].rstrip()
    return make_piece(
        text,
        piece.claim,
        counter=counter,
        note=piece.note,
        cause=piece.cause,
        breaks=piece.breaks[: count - 1],
    )
