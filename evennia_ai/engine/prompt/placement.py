"""Placement: the order of all messages of a prompt, by registry ID, depth and anchor.

Three rules give each text its place:

- Outside the history, the registry ID of a text is its position.
- Inside the history, a depth becomes a slot: the index of the message before which the text is
  placed. Slots are computed on the kept history, after the budget and before any injection, and
  limited to its range. Texts are grouped by slot and the list is built once, because inserting
  into a growing list would shift later slots.
- An anchored note keeps its slot from turn to turn. A floating note moves with every new message,
  so the provider's cache of everything after it is lost. An anchored note only moves if too many
  messages follow it, if its text changed, or if the history was cut.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from evennia_ai.engine.foreign.fields import Count
from evennia_ai.engine.prompt.assembly.merging import RoleTies, Slotted
from evennia_ai.engine.prompt.components import EVENT_ID, HISTORY_ID, TOOL_ID
from evennia_ai.engine.prompt.fragments import (
    Fragment,
    fragments_sharing,
    merge_fragments,
    merge_shared,
    merge_shared_in_history,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, message_tokens
from evennia_ai.engine.prompt.tokens import TokenCounter

_id_and_key = itemgetter(0, 1)


# A message outside the history, after its sort key: registry ID, then key
PlacedMessage = tuple[int, str, Message]


# Some texts ignore their depth. For each of them, by origin: the absolute index of a history
# message. The text is placed before this message.
Slots = Mapping[str, int]


# The depth by which persistent texts are sorted: after all depths except 0.
_STAYING: Final = 0.5


NO_SLOTS: Final[Slots] = MappingProxyType({})


def place_messages(
    fragments: Iterable[Fragment],
    history: History,
    *,
    first: int,
    fixed: Sequence[PlacedMessage] = (),
    slots: Slots = NO_SLOTS,
    ties: RoleTies | None = None,
) -> tuple[Message, ...]:
    """Return the messages of a prompt in their order.

    Args:
        fragments: The texts that the budget kept.
        history: The messages that the prompt may show.
        first: The absolute index at which the kept history starts.
        fixed: The event and the tools' messages with their places.
        slots: The slots of texts that ignore their depth, by origin.
        ties: The rules that sort the texts at one depth by role and merge them, as in SillyTavern.
            None sorts them by ID.
    """
    ordered: list[PlacedMessage] = list(fixed)
    injected: list[Fragment] = []
    shared: list[Fragment] = []
    deep: list[Fragment] = []
    for fragment in fragments:
        claim = fragment.claim
        if claim.shared is not None:
            (shared if claim.depth is None else deep).append(fragment)
        elif claim.depth is not None:
            injected.append(fragment)
        elif fragment.lines:
            ordered += [(claim.id, claim.key, line) for block in fragment.lines for line in block]
        else:
            ordered.append((claim.id, claim.key, fragment.message))
    if shared:
        ordered.extend(merge_shared(shared))
    if deep:
        injected.extend(merge_shared_in_history(deep))
    ordered.sort(key=_id_and_key)
    before = [message for at, _, message in ordered if at <= HISTORY_ID]
    after = [message for _, _, message in ordered[len(before) :]]
    inside = interleave_fragments(injected, history, first=first, slots=slots, ties=ties)
    return (*before, *inside, *after)


def place_fixed(
    event: Message | None, tools: Sequence[Message], *, counter: TokenCounter
) -> tuple[list[PlacedMessage], list[tuple[str, int]]]:
    """Return the event and the tool messages with their places, and their tokens by name."""
    placed: list[PlacedMessage] = []
    tokens: list[tuple[str, int]] = []
    if event is not None:
        placed.append((EVENT_ID, "~event", event))
        tokens.append(("event", event.tokens(counter)))
    if tools:
        placed += [(TOOL_ID, f"~tool{i:04}", message) for i, message in enumerate(tools)]
        tokens.append(("tools", sum(message_tokens(tools, counter))))
    return placed, tokens


def interleave_fragments(
    fragments: Iterable[Fragment],
    history: History,
    *,
    first: int,
    slots: Slots = NO_SLOTS,
    ties: RoleTies | None = None,
) -> list[Message]:
    """Return the kept history with each fragment inserted at its place.

    Fragments before the same history message are sorted by greater depth, lower order, lower
    registry ID, then key. `ties` can give another order. At the end of the history, anchored texts
    come before persistent texts, and persistent texts before texts of depth 0. In later prompts
    the first two kinds are inside the history, so they must have the same order there.
    """
    stop = history.stop
    slotted: list[Slotted] = []
    for index, fragment in enumerate(fragments):
        claim = fragment.claim
        depth: float = claim.depth or 0
        if slots and claim.origin in slots:
            slot, depth = slots[claim.origin], max(depth, 1)
        elif claim.from_oldest:
            slot = history.slot_from_oldest(claim.depth or 0, first=first)
            depth = stop - slot
        else:
            slot = history.slot(claim.depth or 0, first=first, counts=claim.depth_counts)
            if not depth and fragment.message.stays:
                depth = _STAYING
        rank = ties.rank(fragment) if ties else fragment.rank
        slotted.append((slot, -depth, rank, index, fragment))
    slotted.sort()  # each index is unique, so the sort never compares fragments
    kept = history.between(first, stop)
    messages: list[Message] = []
    done = first
    for slot, _, _, _, fragment in ties.merge(slotted) if ties else slotted:
        if slot > done:
            messages += kept[done - first : slot - first]
            done = slot
        messages.append(fragment.message)
    return messages + kept[done - first :]


def slot_of(fragment: Fragment, history: History, *, first: int) -> int:
    """Return the absolute index of the message before which a fragment's depth places it.

    `history.stop` stands for the place after the newest message.
    """
    claim = fragment.claim
    if claim.from_oldest:
        return history.slot_from_oldest(claim.depth or 0, first=first)
    return history.slot(claim.depth or 0, first=first, counts=claim.depth_counts)


# An anchored note moves if more messages follow it than its depth plus this number.
MOST_DRIFT: Final = 16


class Anchor(NamedTuple):
    """The place of an anchored note in the history, which it keeps from turn to turn."""

    at: Count
    """The absolute index of the message after the note."""
    digest: str
    """A hash of the note's message. If it changed, the note is placed again."""


Anchors = Mapping[str, Anchor]


NO_ANCHORS: Final[Anchors] = MappingProxyType({})


def anchor_notes(
    fragments: Sequence[Fragment],
    history: History,
    *,
    first: int,
    cut: int,
    origins: Collection[str],
    before: Anchors,
) -> tuple[Anchors, Slots]:
    """Return the places of anchored notes, and of all fragments that share a message with one.

    Args:
        fragments: The texts that the budget kept.
        history: The messages that the prompt may show.
        first: The absolute index at which the kept history starts.
        cut: The index at which the history of the previous prompt started.
        origins: The origins of anchored notes.
        before: The anchors of the previous prompt.
    """
    if not origins:
        return NO_ANCHORS, NO_SLOTS
    if first > max(cut, history.earlier):
        # A new cut of the history invalidates the provider's cache of all of it anyway. So use
        # this turn to place all notes by their depth again.
        before = NO_ANCHORS
    anchors: dict[str, Anchor] = {}
    slots: dict[str, int] = {}
    for fragment in fragments:
        origin, shared = fragment.claim.origin, fragment.claim.shared
        if origin not in origins:
            continue
        members = [fragment] if shared is None else fragments_sharing(shared, fragments)
        said = fragment.message if shared is None else merge_fragments(shared, members)
        digest = sha256(said.wire()).hexdigest()[:16]
        index = _index(before.get(origin), digest, fragment.claim.depth or 0, history, first)
        anchors[origin] = Anchor(index, digest)
        slots.update((member.claim.origin, index) for member in members)
    return anchors, slots


def _index(known: Anchor | None, digest: str, depth: int, history: History, first: int) -> int:
    """Return the index at which an anchored note is placed.

    The note keeps its index while that is allowed. Otherwise it gets the index for its depth.
    """
    if known is None or known.digest != digest or not first <= known.at <= history.stop:
        return history.slot(depth, first=first)
    drifted = history.counted(known.at) - depth >= MOST_DRIFT
    return history.slot(depth, first=first) if drifted else known.at
