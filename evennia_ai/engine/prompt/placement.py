"""Placement: slot buckets inside the history, IDs outside it, and notes that stay where they stood.

The slot of an injected piece is computed on the kept history, after the budget and before any
injection, and clamped to it: nothing injected can stand anywhere else. Pieces are grouped by slot
and the list is built once; splicing into a growing list puts clamped and equal depths wrong.

A note that floats moves with every message and takes the cached rest of the history with it. An
anchored one stays where its depth put it, until newer messages carried it too far up, its text
changed, or the history was cut, which costs its rest the cache anyway; then its depth puts it
somewhere anew.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.components import EVENT_ID, HISTORY_ID, TOOL_ID
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.joining import RoleTies, Slotted
from evennia_ai.engine.prompt.messages import Message, Part, costs
from evennia_ai.engine.prompt.pieces import Joint, Piece, Rank
from evennia_ai.engine.prompt.tokens import TokenCounter

_id_and_key = itemgetter(0, 1)

# A message at its place outside the history: ID, then key.
Stand = tuple[int, str, Message]
# Where pieces stand that do not go by their depth: before the message of an absolute index.
Slots = Mapping[str, int]
# Sorts what stays behind every depth but 0.
_STAYING: Final = 0.5
NO_SLOTS: Final[Slots] = MappingProxyType({})


def place(
    pieces: Iterable[Piece],
    history: History,
    *,
    first: int,
    fixed: Sequence[Stand] = (),
    slots: Slots = NO_SLOTS,
    ties: RoleTies | None = None,
) -> tuple[Message, ...]:
    """The prompt's messages: what stands before the history, the history, what stands after.

    The kept history starts at the absolute index `first`; `fixed` are the event and tool messages;
    `slots` hold, by their origin, pieces at a place in the history other than that of their depth.
    With `ties` pieces of one place go by their roles there.
    """
    ordered: list[Stand] = list(fixed)
    injected: list[Piece] = []
    shared: list[Piece] = []
    deep: list[Piece] = []
    for piece in pieces:
        claim = piece.claim
        if claim.joint is not None:
            (shared if claim.depth is None else deep).append(piece)
        elif claim.depth is not None:
            injected.append(piece)
        elif piece.lines:
            ordered += [(claim.id, claim.key, line) for block in piece.lines for line in block]
        else:
            ordered.append((claim.id, claim.key, piece.message))
    if shared:
        ordered.extend(joined(shared))
    if deep:
        injected.extend(joined_in_history(deep))
    ordered.sort(key=_id_and_key)
    before = [message for at, _, message in ordered if at <= HISTORY_ID]
    after = [stand[2] for stand in ordered[len(before) :]]
    inside = interleaved(injected, history, first=first, slots=slots, ties=ties)
    return (*before, *inside, *after)


def fixed_stands(
    event: Message | None, tools: Sequence[Message], *, counter: TokenCounter
) -> tuple[list[Stand], list[tuple[str, int]]]:
    """The event and tool messages at their places, and what they cost."""
    stands: list[Stand] = []
    tokens: list[tuple[str, int]] = []
    if event is not None:
        stands.append((EVENT_ID, "~event", event))
        tokens.append(("event", event.tokens(counter)))
    if tools:
        stands += [(TOOL_ID, f"~tool{i:04}", message) for i, message in enumerate(tools)]
        tokens.append(("tools", sum(costs(tools, counter))))
    return stands, tokens


def interleaved(
    pieces: Iterable[Piece],
    history: History,
    *,
    first: int,
    slots: Slots = NO_SLOTS,
    ties: RoleTies | None = None,
) -> list[Message]:
    """The kept history with each injected piece at its slot.

    Inside a slot: deeper first, then lower order, then registry ID, then key (requirement S3-17),
    or where there are `ties` as these say.
    What stays at the end goes before the depth 0, and what keeps its place goes before that: so
    they stand in later prompts, where they have the history's indexes.
    """
    stop = history.stop
    slotted: list[Slotted] = []
    for index, piece in enumerate(pieces):
        claim = piece.claim
        depth: float = claim.depth or 0
        if slots and claim.origin in slots:
            slot, depth = slots[claim.origin], max(depth, 1)
        elif claim.from_oldest:
            slot = history.slot_from_oldest(claim.depth or 0, first=first)
            depth = stop - slot
        else:
            slot = slot_of(piece, history, first=first)
            if not depth and piece.message.stays:
                depth = _STAYING
        slotted.append((slot, -depth, ties.rank(piece) if ties else piece.rank, index, piece))
    slotted.sort()  # no two share an index: pieces themselves are never compared
    kept = history.between(first, stop)
    messages: list[Message] = []
    done = first
    for slot, _, _, _, piece in ties.shared(slotted) if ties else slotted:
        if slot > done:
            messages += kept[done - first : slot - first]
            done = slot
        messages.append(piece.message)
    return messages + kept[done - first :]


def slot_of(piece: Piece, history: History, *, first: int) -> int:
    """Absolute index of the message that the depth of a piece puts it before.

    `history.stop` is after the newest.
    """
    claim = piece.claim
    if claim.from_oldest:
        return history.slot_from_oldest(claim.depth or 0, first=first)
    return history.slot(claim.depth or 0, first=first, counts=claim.depth_counts)


def joined(pieces: Iterable[Piece]) -> list[Stand]:
    """One message for each joint, its pieces in the order of their ID, order and place of birth."""
    by_joint = sorted(pieces, key=_joint_key)
    return [
        (joint.id, joint.key, join(joint, list(members)))
        for joint, members in groupby(by_joint, key=_joint)
    ]


def joined_in_history(pieces: Iterable[Piece]) -> list[Piece]:
    """Pieces that share a message inside the history, as one piece with that message.

    They have one depth; the message ranks where the last of them would.
    """
    by_joint = groupby(sorted(pieces, key=_joint_key), key=_joint)
    made: list[Piece] = []
    for joint, members in by_joint:
        parts = list(members)
        made.append(max(parts, key=lambda piece: piece.rank)._replace(message=join(joint, parts)))
    return made


def join(joint: Joint, pieces: Sequence[Piece]) -> Message:
    """The message that `pieces` share, in their given order, with a part for each."""
    parts: list[Part] = []
    texts: list[str] = []
    at = len(joint.head)
    for piece in pieces:
        claim, message = piece.claim, piece.message
        text = message.content
        if message.joined:
            parts += _moved(message.joined, at)
        else:
            end = at + len(text)
            parts.append(Part(origin=claim.origin, start=at, end=end, revision=claim.revision))
        texts.append(text)
        at += len(text) + len(joint.separator)
    stays = next((piece.claim.stays for piece in pieces if piece.claim.stays), "")
    return Message(
        role=joint.role,
        content=f"{joint.head}{joint.separator.join(texts)}{joint.tail}",
        block=joint.block,
        injected=joint.block == "history",
        stays=stays != "",
        of=stays,
        joined=tuple(parts),
    )


def _moved(parts: Iterable[Part], by: int) -> list[Part]:
    """The parts of a text that stands so much further on in another one."""
    return [replace(part, start=part.start + by, end=part.end + by) for part in parts]


def members_of(joint: Joint, pieces: Iterable[Piece]) -> list[Piece]:
    """The pieces that share this message, in the order they have in it."""
    sharing = (piece for piece in pieces if piece.claim.joint == joint)
    return sorted(sharing, key=_joint_key)


def _joint(piece: Piece) -> Joint:
    assert piece.claim.joint is not None
    return piece.claim.joint


def _joint_key(piece: Piece) -> tuple[int, str, int, Rank]:
    joint = _joint(piece)
    return joint.id, joint.key, piece.claim.id, piece.rank


# A note is put at its depth anew when this many more messages than that follow it.
MOST_DRIFT: Final = 16


class Anchor(NamedTuple):
    """A note's place: before the message of this absolute index; and a hash of what it said."""

    at: Count
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
