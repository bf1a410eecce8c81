"""The budget: which pieces and how much of the history are kept.

Admission goes by `Tier` (`prompt.pieces`: required, reserved, flexible with constants, matched
lore), inside a tier by priority; a piece that does not fit is skipped and the next is tried.
History fills the rest from the newest; dialogue examples yield before any history does, block by
block from the last. When history is full it is cut to a share of its room and the cut is
remembered, so that prompts keep their prefix for a while.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from evennia_ai.engine.errors import BudgetError
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.pieces import (
    Joint,
    Piece,
    Tier,
    block_tokens,
    leading_blocks,
    make_piece,
)
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Called, Verdict

HISTORY_KEY: Final = "conversation_history"
# To what examples give way.
_TO_THE_HISTORY: Final = "the history"
_TO_THE_REST: Final = "everything else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Room kept for one component: at least `min_tokens` of it survive, never over `max_tokens`.

    For `conversation_history`: what flexible pieces may not take from it, and its largest share.
    """

    min_tokens: int = 0
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRules:
    """What a prompt may cost: `limit_tokens` is the context without the reply's reserve.

    `keep_percent` is the share of its room that history is cut to when it is full; 100 keeps as
    much as fits and moves the cut at every turn.
    """

    limit_tokens: int
    keep_percent: int = 60
    pin_examples: bool = False
    """Dialogue examples go in before the history does, and yield to everything else."""
    reserves: Mapping[str, Reserve] = field(default_factory=dict)


class Fitted(NamedTuple):
    """What is kept: `pieces` in no particular order, the history from the index `first` on.

    `judged` holds a verdict for each piece where one did not fit; None says that all did.
    """

    pieces: Sequence[Piece]
    first: int
    tokens: int
    framing_tokens: int
    history_tokens: int
    judged: Sequence[Verdict] | None

    def verdicts(self, history: History, *, called: Called) -> list[Verdict]:
        """One verdict for each piece and one for the history as a range, cut before a message."""
        pieces = [p.fits() for p in self.pieces] if self.judged is None else [*self.judged]
        return [*pieces, _history_verdict(history, self.first, self.history_tokens, called)]


@dataclass(slots=True)
class _Admitted:
    """Pieces admitted so far, the tokens spent, and verdicts as soon as one did not fit.

    `opened` are the messages that admitted pieces share, by key; the first piece of one pays for
    what a message costs, and for what stands around them in it. `opening` is what all paid so.
    """

    kept: list[Piece]
    tokens: int
    opened: dict[str, Joint]
    opening: int
    judged: list[Verdict] | None = None


def fit(
    pieces: Sequence[Piece],
    history: History,
    *,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]] = (),
    cut: int = 0,
) -> Fitted:
    """What of `pieces` and `history` fits.

    `fixed` are the event and tool messages with their tokens, always kept; `cut` is the index the
    history was cut at before. BudgetError: what is required does not fit.
    """
    spent = counter.per_prompt + sum(tokens for _, tokens in fixed)
    steady = [piece for piece in pieces if piece.claim.tier is not Tier.YIELDING]
    admitted = _admit(steady, spent, rules=rules, counter=counter, fixed=fixed)
    yielding: list[Piece] = []
    if len(steady) < len(pieces):
        yielding = [piece for piece in pieces if piece.claim.tier is Tier.YIELDING]
    if yielding and rules.pin_examples:
        held = rules.reserves.get(HISTORY_KEY, Reserve()).min_tokens
        room = rules.limit_tokens - admitted.tokens - held
        _admit_yielding(yielding, admitted, room, to=_TO_THE_REST, counter=counter)
    room = rules.limit_tokens - admitted.tokens
    floor = max(cut, history.earlier)
    first, history_tokens = _cut(history, room, floor, rules=rules, counter=counter)
    if yielding and not rules.pin_examples:
        left = 0 if first > floor else room - history_tokens
        _admit_yielding(yielding, admitted, left, to=_TO_THE_HISTORY, counter=counter)
    framing = counter.per_prompt + admitted.opening
    total = admitted.tokens + history_tokens
    return Fitted(admitted.kept, first, total, framing, history_tokens, admitted.judged)


def _joints(pieces: Sequence[Piece]) -> dict[str, Joint]:
    """The messages that pieces share, by their keys."""
    return {
        piece.claim.joint.key: piece.claim.joint
        for piece in pieces
        if piece.claim.joint is not None
    }


def _costs_of(joints: Mapping[str, Joint], counter: TokenCounter) -> int:
    """What messages cost beside the pieces that share them."""
    around = (joint for joint in joints.values() if joint.head or joint.tail)
    texts = sum(counter.recall(joint.head) + counter.recall(joint.tail) for joint in around)
    return len(joints) * counter.per_message + texts


def _admit(
    pieces: Sequence[Piece],
    spent: int,
    *,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]],
) -> _Admitted:
    opened = _joints(pieces)
    opening = _costs_of(opened, counter) if opened else 0
    total = spent + opening + sum(piece.tokens for piece in pieces)
    if total <= rules.limit_tokens and not rules.reserves:
        return _Admitted(list(pieces), total, opened, opening)
    ranked = sorted(pieces, key=lambda piece: _rank(piece, rules.reserves))
    _check_required(ranked, rules.limit_tokens, fixed, counter)
    admitted = _Admitted([], spent, {}, 0)
    admitted.judged = [
        _admit_one(piece, admitted, rules=rules, counter=counter) for piece in ranked
    ]
    return admitted


def _rank(piece: Piece, reserves: Mapping[str, Reserve]) -> tuple[int, float, int, str]:
    tier = piece.claim.tier
    if piece.claim.key in reserves and tier is not Tier.REQUIRED:
        tier = Tier.RESERVED
    return tier, -piece.claim.priority, piece.claim.id, piece.claim.origin


def _check_required(
    ranked: Sequence[Piece], limit: int, fixed: Sequence[tuple[str, int]], counter: TokenCounter
) -> None:
    required = [piece for piece in ranked if piece.claim.tier is Tier.REQUIRED]
    framing = counter.per_prompt + _costs_of(_joints(required), counter)
    costs = [("framing", framing), *((p.claim.origin, p.tokens) for p in required), *fixed]
    if sum(tokens for _, tokens in costs) > limit:
        raise BudgetError(limit, costs)


def _opening(piece: Piece, admitted: _Admitted, counter: TokenCounter) -> int:
    """What the piece pays for the message it shares, as the first one in it."""
    joint = piece.claim.joint
    if joint is None or joint.key in admitted.opened:
        return 0
    return _costs_of({joint.key: joint}, counter)


def _take(piece: Piece, admitted: _Admitted, opening: int) -> None:
    admitted.kept.append(piece)
    admitted.tokens += piece.tokens + opening
    admitted.opening += opening
    admitted.opened |= _joints((piece,))


def _admit_one(
    piece: Piece, admitted: _Admitted, *, rules: BudgetRules, counter: TokenCounter
) -> Verdict:
    """Keep, shorten or skip one piece; `admitted` is this stage's own running result."""
    opening = _opening(piece, admitted, counter)
    reserve = rules.reserves.get(piece.claim.key)
    room = rules.limit_tokens - admitted.tokens - opening
    if reserve is None and piece.claim.tier is not Tier.REQUIRED:
        room -= rules.reserves.get(HISTORY_KEY, Reserve()).min_tokens
    wanted = piece
    if reserve is not None and piece.claim.tier is not Tier.REQUIRED:
        wanted = _shortened(piece, reserve, room, counter)
    if wanted.tokens > room:
        return _dropped(piece, room)
    _take(wanted, admitted, opening)
    fits = wanted.fits()
    return replace(fits, reason=f"{fits.reason}, {room} were left")


def _dropped(piece: Piece, room: int) -> Verdict:
    return Verdict(
        stage="budget",
        item=piece.claim.origin,
        kept=False,
        reason=f"does not fit: needs {piece.tokens} tokens, {max(room, 0)} were left",
        tokens=piece.tokens,
    )


def _shortened(piece: Piece, reserve: Reserve, room: int, counter: TokenCounter) -> Piece:
    """The piece cut at a word to its largest size, or to the room while its least size fits."""
    largest = reserve.max_tokens if reserve.max_tokens is not None else piece.tokens
    target = min(largest, room)
    if piece.tokens <= target or target < reserve.min_tokens:
        return piece
    words = re.findall(r"\s*\S+", piece.message.content)
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if _with_text(piece, "".join(words[:middle]), counter).tokens <= target:
            low = middle
        else:
            high = middle - 1
    return _with_text(piece, "".join(words[:low]), counter) if low else piece


def _with_text(piece: Piece, text: str, counter: TokenCounter) -> Piece:
    note = f"cut to its share ({piece.tokens} tokens whole)"
    return make_piece(text, piece.claim, counter=counter, note=note, cause=piece.cause)


def _cut(
    history: History, room: int, floor: int, *, rules: BudgetRules, counter: TokenCounter
) -> tuple[int, int]:
    """Index of the first kept message and the tokens of all kept."""
    if not len(history):
        return history.stop, 0
    held = rules.reserves.get(HISTORY_KEY)
    if held is not None and held.max_tokens is not None:
        room = min(room, held.max_tokens)
    first, tokens = history.fitting(room, counter=counter, floor=floor)
    if first == floor:
        return first, tokens
    if rules.keep_percent < 100:
        share = room * rules.keep_percent // 100
        first, tokens = history.fitting(share, counter=counter, floor=floor)
    whole = history.whole_pairs(first)
    return (
        (first, tokens) if whole == first else (whole, history.tokens_from(whole, counter=counter))
    )


def _admit_yielding(
    yielding: Sequence[Piece], admitted: _Admitted, room: int, *, to: str, counter: TokenCounter
) -> None:
    """Dialogue examples: only what fits in the room that is left `to` them by something."""
    steady = [*admitted.kept]
    answers: list[tuple[Piece, Verdict | None]] = []  # each piece, and what of it gave way
    for piece in sorted(yielding, key=lambda p: (-p.claim.priority, p.rank)):
        opening = _opening(piece, admitted, counter)
        kept = leading_blocks(piece, room - opening, counter=counter)
        gave_way = None
        if kept is not piece:
            gave_way = _gave_way(piece, kept, room, opening=opening, to=to, counter=counter)
        answers.append((piece, gave_way))
        if kept is not None:
            room -= kept.tokens + opening
            _take(kept, admitted, opening)
    if admitted.judged is None and all(gave_way is None for _, gave_way in answers):
        return
    judged = [p.fits() for p in steady] if admitted.judged is None else admitted.judged
    admitted.judged = [*judged, *(gave_way or piece.fits() for piece, gave_way in answers)]


def _gave_way(
    piece: Piece, kept: Piece | None, room: int, *, opening: int, to: str, counter: TokenCounter
) -> Verdict:
    """The verdict on a piece that yields and is `kept` in part or not at all, with the reason."""
    stay = 0 if kept is None else kept.blocks
    needed = opening + block_tokens(piece, stay + 1, counter=counter)
    short = f"{needed} tokens, {room} were left"
    if kept is None:
        needs = "needs" if piece.blocks == 1 else f"the first of {piece.blocks} blocks needs"
        return replace(_dropped(piece, room), reason=f"gives way to {to}: {needs} {short}")
    partly = f"kept {stay} of {piece.blocks} blocks, the rest gives way to {to}"
    note = f"; {kept.note}" if kept.note else ""
    return replace(kept.fits(), reason=f"{partly}: {stay + 1} need {short}{note}")


def _history_verdict(history: History, first: int, tokens: int, called: Called) -> Verdict:
    kept, whole = history.stop - first, history.stop
    if not whole:
        reason = "no messages"
    elif kept == whole:
        reason = f"all {whole} messages fit"
    else:
        before = f"; cut before {called(first)}" if kept else ""
        reason = f"kept the newest {kept} of {whole} messages{before}"
    return Verdict(
        stage="budget", item="history", kept=kept > 0 or not whole, reason=reason, tokens=tokens
    )
