"""The token budget: which fragments and which part of the history fit into a prompt.

A fragment is a text that asks for a place in the prompt. Fragments are admitted by their `Tier`
(required, reserved, flexible with constant lore, matched lore), and by priority inside a tier. A
fragment that does not fit is skipped and the next one is tried. The history fills the rest, from
the newest message backwards. If tokens are short, blocks of dialogue examples are left out before
any history message, the last block first.

A full history is cut to a percentage of its room, and the next prompts reuse that cut. So they keep
a common prefix for a while, instead of losing one message in each turn.
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
# A verdict says with these words which texts took the tokens of a dialogue example.
_FOR_HISTORY: Final = "the history"
_FOR_THE_REST: Final = "everything else"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    """The tokens of the budget that are reserved for one component.

    A reserve for `conversation_history` is a number of tokens that flexible fragments may not
    take.
    """

    min_tokens: int = 0
    """The smallest number of tokens to which the component's text may be cut."""
    max_tokens: int | None = None
    """The most tokens of the component's text. A longer text is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRules:
    """The token limits of a prompt."""

    limit_tokens: int
    """The most tokens of the prompt: the model's context window minus the reserve for the reply."""
    keep_percent: int = 60
    """The percentage of its room to which a full history is cut. 100 keeps everything that fits, so
    the cut moves in every turn."""
    pin_examples: bool = False
    """If True, dialogue examples are admitted before the history, after all other texts."""
    reserves: Mapping[str, Reserve] = field(default_factory=dict)
    """The reserves by the keys of components."""


class Fitted(NamedTuple):
    """The texts and the part of the history that fit into the prompt."""

    fragments: Sequence[Fragment]
    """The kept fragments, in no particular order."""
    first: int
    """The absolute index of the first kept history message."""
    tokens: int
    framing_tokens: int
    history_tokens: int
    judged: Sequence[Verdict] | None
    """A verdict on each fragment, whether it fits; None if all fragments fit."""

    def verdicts(self, history: History, *, called: Called) -> list[Verdict]:
        """Return a verdict on each fragment and one on the history."""
        fragments = [p.fits() for p in self.fragments] if self.judged is None else [*self.judged]
        return [*fragments, _history_verdict(history, self.first, self.history_tokens, called)]


@dataclass(slots=True)
class _Admitted:
    """The fragments that the budget has admitted so far, and their tokens."""

    kept: list[Fragment]
    tokens: int
    opened: dict[str, SharedMessage]
    """The messages that several admitted fragments share, by key."""
    opening: int
    """The tokens of shared messages themselves, which their first fragment adds."""
    judged: list[Verdict] | None = None
    """The verdicts on the fragments so far; None as long as all of them fit."""


def fit_to_limit(
    fragments: Sequence[Fragment],
    history: History,
    *,
    rules: BudgetRules,
    counter: TokenCounter,
    fixed: Sequence[tuple[str, int]] = (),
    cut: int = 0,
) -> Fitted:
    """Choose the fragments and the part of the history that fit into the token limit.

    Args:
        fragments: The texts that want to be in the prompt.
        history: The messages that the prompt may show.
        rules: The limits.
        counter: The counter for tokens.
        fixed: The event and the tools' messages with their tokens. They are always kept.
        cut: The absolute index at which the previous prompt cut the history.

    Raises:
        BudgetError: the required texts do not fit.
    """
    spent = counter.per_prompt + sum([tokens for _, tokens in fixed])
    last = Tier.YIELDING
    yielding = [fragment for fragment in fragments if fragment.claim.tier is last]
    steady = fragments
    if yielding:
        steady = [fragment for fragment in fragments if fragment.claim.tier is not last]
    admitted = _admit(steady, spent, rules=rules, counter=counter, fixed=fixed)
    if yielding and rules.pin_examples:
        held = rules.reserves.get(HISTORY_KEY, Reserve()).min_tokens
        room = rules.limit_tokens - admitted.tokens - held
        _admit_yielding(yielding, admitted, room, to=_FOR_THE_REST, counter=counter)
    room = rules.limit_tokens - admitted.tokens
    floor = max(cut, history.earlier)
    first, history_tokens = _cut_history(history, room, floor, rules=rules, counter=counter)
    if yielding and not rules.pin_examples:
        left = 0 if first > floor else room - history_tokens
        _admit_yielding(yielding, admitted, left, to=_FOR_HISTORY, counter=counter)
    framing = counter.per_prompt + admitted.opening
    total = admitted.tokens + history_tokens
    return Fitted(admitted.kept, first, total, framing, history_tokens, admitted.judged)


def _shared_messages(fragments: Sequence[Fragment]) -> dict[str, SharedMessage]:
    """Return the shared messages to which the fragments belong, by key."""
    return {
        fragment.claim.shared.key: fragment.claim.shared
        for fragment in fragments
        if fragment.claim.shared is not None
    }


def _cost_of_messages(shared_messages: Mapping[str, SharedMessage], counter: TokenCounter) -> int:
    """Return the tokens that shared messages need in addition to the fragments in them."""
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
    """Admit those of the fragments that fit.

    Dialogue examples are not among these fragments; `_admit_yielding` admits them later.
    """
    opened = _shared_messages(fragments)
    opening = _cost_of_messages(opened, counter) if opened else 0
    total = spent + opening + sum([fragment.tokens for fragment in fragments])
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
    """Return the sort key by which fragments are admitted to the budget."""
    tier = fragment.claim.tier
    if fragment.claim.key in reserves and tier is not Tier.REQUIRED:
        tier = Tier.RESERVED
    return tier, -fragment.claim.priority, fragment.claim.id, fragment.claim.origin


def _check_required(
    ranked: Sequence[Fragment], limit: int, fixed: Sequence[tuple[str, int]], counter: TokenCounter
) -> None:
    """Check that the required fragments and the fixed messages fit into the token limit.

    Raises:
        BudgetError: they do not fit.
    """
    required = [fragment for fragment in ranked if fragment.claim.tier is Tier.REQUIRED]
    framing = counter.per_prompt + _cost_of_messages(_shared_messages(required), counter)
    costs = [("framing", framing), *((p.claim.origin, p.tokens) for p in required), *fixed]
    if sum(tokens for _, tokens in costs) > limit:
        raise BudgetError(limit, costs)


def _opening_cost(fragment: Fragment, admitted: _Admitted, counter: TokenCounter) -> int:
    """Return the tokens that a fragment's shared message adds; 0 if it was already added."""
    shared = fragment.claim.shared
    if shared is None or shared.key in admitted.opened:
        return 0
    return _cost_of_messages({shared.key: shared}, counter)


def _keep(fragment: Fragment, admitted: _Admitted, opening: int) -> None:
    """Admit a fragment. `opening` are the tokens that it adds for its shared message."""
    admitted.kept.append(fragment)
    admitted.tokens += fragment.tokens + opening
    admitted.opening += opening
    admitted.opened |= _shared_messages((fragment,))


def _admit_one(
    fragment: Fragment, admitted: _Admitted, *, rules: BudgetRules, counter: TokenCounter
) -> Verdict:
    """Keep, shorten or skip one fragment by the budget, and return the verdict on it."""
    opening = _opening_cost(fragment, admitted, counter)
    reserve = rules.reserves.get(fragment.claim.key)
    room = rules.limit_tokens - admitted.tokens - opening
    if reserve is None and fragment.claim.tier is not Tier.REQUIRED:
        room -= rules.reserves.get(HISTORY_KEY, Reserve()).min_tokens
    wanted = fragment
    if reserve is not None and fragment.claim.tier is not Tier.REQUIRED:
        wanted = _shorten(fragment, reserve, room, counter)
    if wanted.tokens > room:
        return _refuse(fragment, room)
    _keep(wanted, admitted, opening)
    fits = wanted.fits()
    return replace(fits, reason=f"{fits.reason}, {room} were left")


def _refuse(fragment: Fragment, room: int) -> Verdict:
    """Return the verdict that a fragment does not fit into `room` tokens."""
    return Verdict(
        stage="budget",
        item=fragment.claim.origin,
        kept=False,
        reason=f"does not fit: needs {fragment.tokens} tokens, {max(room, 0)} were left",
        tokens=fragment.tokens,
    )


def _shorten(fragment: Fragment, reserve: Reserve, room: int, counter: TokenCounter) -> Fragment:
    """Return a fragment cut at a word, to the most tokens of its reserve or to `room` tokens.

    If the room is less than the least tokens of the reserve, the fragment stays whole. Then it
    does not fit and is left out.
    """
    largest = reserve.max_tokens if reserve.max_tokens is not None else fragment.tokens
    target = min(largest, room)
    if fragment.tokens <= target or target < reserve.min_tokens:
        return fragment
    words = re.findall(r"\s*\S+", fragment.message.content)
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if _replace_text(fragment, "".join(words[:middle]), counter).tokens <= target:
            low = middle
        else:
            high = middle - 1
    return _replace_text(fragment, "".join(words[:low]), counter) if low else fragment


def _replace_text(fragment: Fragment, text: str, counter: TokenCounter) -> Fragment:
    """Return the fragment with a shortened text, and with a note about that for its verdict."""
    note = f"cut to its share ({fragment.tokens} tokens whole)"
    return make_fragment(text, fragment.claim, counter=counter, note=note, cause=fragment.cause)


def _cut_history(
    history: History, room: int, floor: int, *, rules: BudgetRules, counter: TokenCounter
) -> tuple[int, int]:
    """Return the index of the first history message to keep, and the tokens of all kept ones."""
    if not len(history):
        return history.stop, 0
    held = rules.reserves.get(HISTORY_KEY)
    if held is not None and held.max_tokens is not None:
        room = min(room, held.max_tokens)
    first, tokens = history.fitting(room, counter=counter, floor=floor)
    if first == floor:
        return first, tokens
    if rules.keep_percent < 100:
        # Cut more than is needed now. Then the next turns need no cut and can reuse the provider's
        # cache.
        share = room * rules.keep_percent // 100
        first, tokens = history.fitting(share, counter=counter, floor=floor)
    whole = history.after_orphan_results(first)
    return (
        (first, tokens) if whole == first else (whole, history.tokens_from(whole, counter=counter))
    )


def _admit_yielding(
    yielding: Sequence[Fragment], admitted: _Admitted, room: int, *, to: str, counter: TokenCounter
) -> None:
    """Admit as many blocks of dialogue examples as fit into `room` tokens.

    For verdicts, `to` names the texts for which further examples are left out.
    """
    steady = [*admitted.kept]
    answers: list[
        tuple[Fragment, Verdict | None]
    ] = []  # each fragment with its verdict; the verdict is None if all blocks are kept
    for fragment in sorted(yielding, key=lambda p: (-p.claim.priority, p.rank)):
        opening = _opening_cost(fragment, admitted, counter)
        kept = leading_blocks(fragment, room - opening, counter=counter)
        gave_way = None
        if kept is not fragment:
            gave_way = _verdict_on_yielding(
                fragment, kept, room, opening=opening, to=to, counter=counter
            )
        answers.append((fragment, gave_way))
        if kept is not None:
            room -= kept.tokens + opening
            _keep(kept, admitted, opening)
    if admitted.judged is None and all(gave_way is None for _, gave_way in answers):
        return
    judged = [p.fits() for p in steady] if admitted.judged is None else admitted.judged
    admitted.judged = [*judged, *(gave_way or fragment.fits() for fragment, gave_way in answers)]


def _verdict_on_yielding(
    fragment: Fragment,
    kept: Fragment | None,
    room: int,
    *,
    opening: int,
    to: str,
    counter: TokenCounter,
) -> Verdict:
    """Return the verdict on examples that were left out, or kept only with the blocks in `kept`."""
    stay = 0 if kept is None else kept.blocks
    needed = opening + block_tokens(fragment, stay + 1, counter=counter)
    short = f"{needed} tokens, {room} were left"
    if kept is None:
        needs = "needs" if fragment.blocks == 1 else f"the first of {fragment.blocks} blocks needs"
        return replace(_refuse(fragment, room), reason=f"gives way to {to}: {needs} {short}")
    partly = f"kept {stay} of {fragment.blocks} blocks, the rest gives way to {to}"
    note = f"; {kept.note}" if kept.note else ""
    return replace(kept.fits(), reason=f"{partly}: {stay + 1} need {short}{note}")


def _history_verdict(history: History, first: int, tokens: int, called: Called) -> Verdict:
    """Return one verdict on the whole history: which messages are kept."""
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
