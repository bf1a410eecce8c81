"""Placement: slot buckets inside the history, IDs outside it.

The slot of an injected piece is computed on the kept history, after the budget and before any
injection, and clamped to it: nothing injected can stand anywhere else. Pieces are grouped by slot
and the list is built once; splicing into a growing list puts clamped and equal depths wrong.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from evennia_ai.prompt.components import HISTORY_ID
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, Part
from evennia_ai.prompt.pieces import Joint, Piece

# A message at its place outside the history: ID, then key.
Stand = tuple[int, str, Message]


def place(
    pieces: Iterable[Piece],
    history: History,
    *,
    first: int,
    fixed: Sequence[Stand] = (),
) -> tuple[Message, ...]:
    """The prompt's messages: what stands before the history, the history, what stands after.

    The kept history starts at the absolute index `first`; `fixed` are the event and tool messages.
    """
    ordered: list[Stand] = list(fixed)
    injected: list[Piece] = []
    shared: list[Piece] = []
    for piece in pieces:
        if piece.depth is not None:
            injected.append(piece)
        elif piece.joint is not None:
            shared.append(piece)
        else:
            ordered.append((piece.id, piece.key, piece.message))
    if shared:
        ordered.extend(joined(shared))
    ordered.sort(key=_id_and_key)
    before = [message for at, _, message in ordered if at <= HISTORY_ID]
    after = [message for at, _, message in ordered if at > HISTORY_ID]
    return (*before, *interleaved(injected, history, first=first), *after)


def interleaved(pieces: Iterable[Piece], history: History, *, first: int) -> list[Message]:
    """The kept history with each injected piece at its slot.

    Inside a slot: deeper first, then lower order, then registry ID, then key (requirement S3-17).
    """
    stop = history.stop
    slotted = []
    for piece in pieces:
        slot = slot_of(piece, history, first=first)
        depth = stop - slot if piece.from_oldest else piece.depth or 0
        slotted.append((slot, -depth, piece.order, piece.id, piece.key, piece.origin, piece))
    slotted.sort(key=_all_but_piece)
    messages: list[Message] = []
    done = first
    for slot, *_, piece in slotted:
        if slot > done:
            messages += history.between(done, slot)
            done = slot
        messages.append(piece.message)
    return messages + history.between(done, stop)


def slot_of(piece: Piece, history: History, *, first: int) -> int:
    """Absolute index of the message the piece stands before; `history.stop` is after the newest."""
    depth = piece.depth or 0
    if piece.from_oldest:
        return history.slot_from_oldest(depth, first=first)
    return history.slot(depth, first=first)


def joined(pieces: Iterable[Piece]) -> list[Stand]:
    """One message for each joint, its pieces in the order of their ID, order and place of birth."""
    by_joint = sorted(pieces, key=_joint_key)
    return [
        (joint.id, joint.key, join(joint, list(members)))
        for joint, members in groupby(by_joint, key=_joint)
    ]


def join(joint: Joint, pieces: Sequence[Piece]) -> Message:
    """The message that `pieces` share, in their given order, with a part for each."""
    parts: list[Part] = []
    texts: list[str] = []
    at = 0
    for piece in pieces:
        text = piece.message.content
        parts.append(
            Part(origin=piece.origin, start=at, end=at + len(text), revision=piece.revision)
        )
        texts.append(text)
        at += len(text) + len(joint.separator)
    return Message(
        role=joint.role,
        content=joint.separator.join(texts),
        block=joint.block,
        parts=tuple(parts),
    )


def _id_and_key(stand: Stand) -> tuple[int, str]:
    return stand[0], stand[1]


def _all_but_piece(slotted: tuple[int, int, int, int, str, str, Piece]) -> tuple[object, ...]:
    return slotted[:6]


def _joint(piece: Piece) -> Joint:
    assert piece.joint is not None
    return piece.joint


def _joint_key(piece: Piece) -> tuple[int, str, int, int, str]:
    joint = _joint(piece)
    return joint.id, joint.key, piece.id, piece.order, piece.key
