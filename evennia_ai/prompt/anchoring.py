"""Anchored notes: where one stands is kept from prompt to prompt, and with it the prefix.

A note that floats moves with every message and takes the cached rest of the history with it. One
that is anchored stays where its depth put it, until newer messages carried it too far up, its text
changed, or the history was cut, which costs its rest the cache anyway; then its depth puts it
somewhere anew.
"""

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.prompt.history import History
from evennia_ai.prompt.pieces import Piece
from evennia_ai.prompt.placement import NO_SLOTS, Slots, join, members_of

# A note is put at its depth anew when this many more messages than that follow it.
MOST_DRIFT: Final = 16


class Anchor(NamedTuple):
    """A note's place: before the message of this absolute index; and a hash of what it said."""

    at: int
    digest: str


Anchors = Mapping[str, Anchor]
NO_ANCHORS: Final[Anchors] = MappingProxyType({})


def anchored(
    pieces: Sequence[Piece],
    history: History,
    *,
    first: int,
    cut: int,
    origins: Collection[str],
    before: Anchors,
) -> tuple[Anchors, Slots]:
    """The anchors of the notes of these origins, and the slots of all pieces in their messages.

    The kept history begins at the absolute index `first`, that of the prompt before this one began
    at `cut`; `before` are the anchors of that prompt.
    """
    if not origins:
        return NO_ANCHORS, NO_SLOTS
    if first > max(cut, history.earlier):
        before = NO_ANCHORS
    anchors: dict[str, Anchor] = {}
    slots: dict[str, int] = {}
    for piece in pieces:
        origin, joint = piece.claim.origin, piece.claim.joint
        if origin not in origins:
            continue
        members = [piece] if joint is None else members_of(joint, pieces)
        said = piece.message if joint is None else join(joint, members)
        digest = sha256(said.wire()).hexdigest()[:16]
        index = _index(before.get(origin), digest, piece.claim.depth or 0, history, first)
        anchors[origin] = Anchor(index, digest)
        slots.update((member.claim.origin, index) for member in members)
    return anchors, slots


def _index(known: Anchor | None, digest: str, depth: int, history: History, first: int) -> int:
    """The index of an anchor that still holds, or the one that the depth gives now."""
    if known is None or known.digest != digest or not first <= known.at <= history.stop:
        return history.slot(depth, first=first)
    drifted = history.counted(known.at) - depth >= MOST_DRIFT
    return history.slot(depth, first=first) if drifted else known.at
