"""The budget: which fragments and how much of the history are kept.

Admission goes by `Tier` (`prompt.fragments`: required, reserved, flexible with constants, matched
lore), inside a tier by priority; a fragment that does not fit is skipped and the next is tried.
History fills the rest from the newest; dialogue examples yield before any history does, block by
block from the last. When history is full it is cut to a share of its room and the cut is
remembered, so that prompts keep their prefix for a while.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from evennia_ai.engine.errors import BudgetError
from evennia_ai.engine.prompt.fragments import (
    Fragment,
    SharedMessage,
    Tier,
    block_tokens,
    leading_blocks,
    make_fragment,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.engine.prompt.trace import Called, Verdict

HISTORY_KEY: Final = "conversation_history"
# To what examples give way.
_TO_THE_HISTORY: Final = "the history"
_TO_THE_REST: Final = "everything else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """Room kept for one component: at least `min_tokens` of it survive, never over `max_tokens`.

    For `conversation_history`: what flexible fragments may not take from it, and its largest share.
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
    """What is kept: `fragments` in no particular order, the history from the index `first` on.

    `judged` holds a verdict for each fragment where one did not fit; None says that all did.
    """

    fragments: Sequence[Fragment]
    first: int
    tokens: int
    framing_tokens: int
    history_tokens: int
    judged: Sequence[Verdict] | None

    def verdicts(self, history: History, *, called: Called) -> list[Verdict]:
        """One verdict for each fragment and one for the history as a range, cut before a message."""
        fragments = [p.fits() for p in self.fragments] if self.judged is None else [*self.judged]
        return [*fragments, _history_verdict(history, self.first, self.history_tokens, called)]


@dataclass(slots=True)
class _Admitted:
    """Fragments admitted so far, the tokens spent, and verdicts as soon as one did not fit.

    `opened` are the messages that admitted fragments share, by key; the first fragment of one pays
    for what a message costs, and for what stands around them in it. `opening` is what all paid so.
    """

    kept: list[Fragment]
    tokens: int
    opened: dict[str, SharedMessage]
    opening: int
    judged: list[Verdict] | None = None


def fit(
    fragments: Sequence[Fragment],
    history: History,
    *,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]] = (),
    cut: int = 0,
) -> Fitted:
    """What of `fragments` and `history` fits.

    `fixed` are the event and tool messages with their tokens, always kept; `cut` is the index the
    history was cut at before. BudgetError: what is required does not fit.
    """
    spent = counter.per_prompt + sum(tokens for _, tokens in fixed)
    steady = [fragment for fragment in fragments if fragment.claim.tier is not Tier.YIELDING]
    admitted = _admit(steady, spent, rules=rules, counter=counter, fixed=fixed)
    yielding: list[Fragment] = []
    if len(steady) < len(fragments):
        yielding = [fragment for fragment in fragments if fragment.claim.tier is Tier.YIELDING]
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


def _shared_messages(fragments: Sequence[Fragment]) -> dict[str, SharedMessage]:
    """The messages that fragments share, by their keys."""
    return {
        fragment.claim.shared.key: fragment.claim.shared
        for fragment in fragments
        if fragment.claim.shared is not None
    }


def _costs_of(shared_messages: Mapping[str, SharedMessage], counter: TokenCounter) -> int:
    """What messages cost beside the fragments that share them."""
    around = (shared for shared in shared_messages.values() if shared.head or shared.tail)
    texts = sum(counter.recall(shared.head) + counter.recall(shared.tail) for shared in around)
    return len(shared_messages) * counter.per_message + texts


def _admit(
    fragments: Sequence[Fragment],
    spent: int,
    *,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]],
) -> _Admitted:
    opened = _shared_messages(fragments)
    opening = _costs_of(opened, counter) if opened else 0
    total = spent + opening + sum(fragment.tokens for fragment in fragments)
    if total <= rules.limit_tokens and not rules.reserves:
        return _Admitted(list(fragments), total, opened, opening)
    ranked = sorted(fragments, key=lambda fragment: _rank(fragment, rules.reserves))
    _check_required(ranked, rules.limit_tokens, fixed, counter)
    admitted = _Admitted([], spent, {}, 0)
    admitted.judged = [
        _admit_one(fragment, admitted, rules=rules, counter=counter) for fragment in ranked
    ]
    return admitted


def _rank(fragment: Fragment, reserves: Mapping[str, Reserve]) -> tuple[int, float, int, str]:
    tier = fragment.claim.tier
    if fragment.claim.key in reserves and tier is not Tier.REQUIRED:
        tier = Tier.RESERVED
    return tier, -fragment.claim.priority, fragment.claim.id, fragment.claim.origin


def _check_required(
    ranked: Sequence[Fragment], limit: int, fixed: Sequence[tuple[str, int]], counter: TokenCounter
) -> None:
    required = [fragment for fragment in ranked if fragment.claim.tier is Tier.REQUIRED]
    framing = counter.per_prompt + _costs_of(_shared_messages(required), counter)
    costs = [("framing", framing), *((p.claim.origin, p.tokens) for p in required), *fixed]
    if sum(tokens for _, tokens in costs) > limit:
        raise BudgetError(limit, costs)


def _opening(fragment: Fragment, admitted: _Admitted, counter: TokenCounter) -> int:
    """What the fragment pays for the message it shares, as the first one in it."""
    shared = fragment.claim.shared
    if shared is None or shared.key in admitted.opened:
        return 0
    return _costs_of({shared.key: shared}, counter)


def _take(fragment: Fragment, admitted: _Admitted, opening: int) -> None:
    admitted.kept.append(fragment)
    admitted.tokens += fragment.tokens + opening
    admitted.opening += opening
    admitted.opened |= _shared_messages((fragment,))


def _admit_one(
    fragment: Fragment, admitted: _Admitted, *, rules: BudgetRules, counter: TokenCounter
) -> Verdict:
    """Keep, shorten or skip one fragment; `admitted` is this stage's own running result."""
    opening = _opening(fragment, admitted, counter)
    reserve = rules.reserves.get(fragment.claim.key)
    room = rules.limit_tokens - admitted.tokens - opening
    if reserve is None and fragment.claim.tier is not Tier.REQUIRED:
        room -= rules.reserves.get(HISTORY_KEY, Reserve()).min_tokens
    wanted = fragment
    if reserve is not None and fragment.claim.tier is not Tier.REQUIRED:
        wanted = _shortened(fragment, reserve, room, counter)
    if wanted.tokens > room:
        return _dropped(fragment, room)
    _take(wanted, admitted, opening)
    fits = wanted.fits()
    return replace(fits, reason=f"{fits.reason}, {room} were left")


def _dropped(fragment: Fragment, room: int) -> Verdict:
    return Verdict(
        stage="budget",
        item=fragment.claim.origin,
        kept=False,
        reason=f"does not fit: needs {fragment.tokens} tokens, {max(room, 0)} were left",
        tokens=fragment.tokens,
    )


def _shortened(fragment: Fragment, reserve: Reserve, room: int, counter: TokenCounter) -> Fragment:
    """The fragment cut at a word to its largest size, or to the room while its least size fits."""
    largest = reserve.max_tokens if reserve.max_tokens is not None else fragment.tokens
    target = min(largest, room)
    if fragment.tokens <= target or target < reserve.min_tokens:
        return fragment
    words = re.findall(r"\s*\S+", fragment.message.content)
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if _with_text(fragment, "".join(words[:middle]), counter).tokens <= target:
            low = middle
        else:
            high = middle - 1
    return _with_text(fragment, "".join(words[:low]), counter) if low else fragment


def _with_text(fragment: Fragment, text: str, counter: TokenCounter) -> Fragment:
    note = f"cut to its share ({fragment.tokens} tokens whole)"
    return make_fragment(text, fragment.claim, counter=counter, note=note, cause=fragment.cause)


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
    yielding: Sequence[Fragment], admitted: _Admitted, room: int, *, to: str, counter: TokenCounter
) -> None:
    """Dialogue examples: only what fits in the room that is left `to` them by something."""
    steady = [*admitted.kept]
    answers: list[tuple[Fragment, Verdict | None]] = []  # each fragment, and what of it gave way
    for fragment in sorted(yielding, key=lambda p: (-p.claim.priority, p.rank)):
        opening = _opening(fragment, admitted, counter)
        kept = leading_blocks(fragment, room - opening, counter=counter)
        gave_way = None
        if kept is not fragment:
            gave_way = _gave_way(fragment, kept, room, opening=opening, to=to, counter=counter)
        answers.append((fragment, gave_way))
        if kept is not None:
            room -= kept.tokens + opening
            _take(kept, admitted, opening)
    if admitted.judged is None and all(gave_way is None for _, gave_way in answers):
        return
    judged = [p.fits() for p in steady] if admitted.judged is None else admitted.judged
    admitted.judged = [*judged, *(gave_way or fragment.fits() for fragment, gave_way in answers)]


def _gave_way(
    fragment: Fragment,
    kept: Fragment | None,
    room: int,
    *,
    opening: int,
    to: str,
    counter: TokenCounter,
) -> Verdict:
    """The verdict on a fragment that yields and is `kept` in part or not at all, with the reason."""
    stay = 0 if kept is None else kept.blocks
    needed = opening + block_tokens(fragment, stay + 1, counter=counter)
    short = f"{needed} tokens, {room} were left"
    if kept is None:
        needs = "needs" if fragment.blocks == 1 else f"the first of {fragment.blocks} blocks needs"
        return replace(_dropped(fragment, room), reason=f"gives way to {to}: {needs} {short}")
    partly = f"kept {stay} of {fragment.blocks} blocks, the rest gives way to {to}"
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
