"""Merging: texts at one depth become one message, and neighbouring system messages are joined.

SillyTavern makes one message of all texts with the same depth, order and role. Roles are sorted
assistant, user, system. Inside the message, components come first, by their IDs. Then come a
summary, the author's note, the card's depth prompt, the persona, lore, and other notes. A text
that keeps its place in the history (an anchored note, a persistent text) is never merged, because
the next prompt must contain it unchanged.

Neighbouring system messages without a name are joined ("squashed"). The lines before and after the
history and the headings of examples are never joined.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from evennia_ai.engine.prompt.assembly.rules import ALONE
from evennia_ai.engine.prompt.components import HISTORY_ID
from evennia_ai.engine.prompt.fragments import Fragment, Rank
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import Message, Part

# A tuple that sorts fragments in the history. It has the index of the next message, the negative
# depth, the rank at that depth, the index in the list, and the fragment.
Slotted = tuple[int, float, Any, int, Fragment]
# The sort key of a text at one depth: its order, role and kind, then its place inside the kind
RoleRank = tuple[float, int, int, Rank]

_ROLES: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}
_COMPONENT, _SUMMARY, _NOTE, _DEPTH_PROMPT, _PERSONA, _LORE, _OTHER = range(7)
# The kinds of components and notes whose origin begins with the name of another kind
_KINDS: Final[Mapping[str, int]] = {
    "note:summary": _SUMMARY,
    "component:card_depth_prompt": _DEPTH_PROMPT,
    "note:depth_prompt": _DEPTH_PROMPT,
    "component:persona_description": _PERSONA,
    "note:persona": _PERSONA,
}
_SEPARATOR: Final = "\n"

EXAMPLE_HEADING: Final = "assembly:example_heading"
"""The origin of the heading above a block of example dialogue."""

_ALONE: Final = frozenset({EXAMPLE_HEADING, *(f"component:{key}" for key in ALONE)})
# Caches for merged messages, in the memo of the first of them: the list of messages that was
# merged, and the resulting message. An equal list reuses the result.
_JOINED: Final = Slot[tuple[list[Message], Message]]("joined")
_SQUASHED: Final = Slot[tuple[list[Message], Message]]("squashed")


class RoleTies(NamedTuple):
    """The rules by which the texts of one depth are sorted by role and merged."""

    note: str = ""
    """The origin of the author's note."""
    apart: Collection[str] = frozenset()
    """The origins of texts that are never merged because they keep their place in the history."""

    def rank(self, fragment: Fragment) -> RoleRank:
        """Return the sort key of a fragment among the texts of the same place and depth."""
        role = _ROLES.get(fragment.message.role, len(_ROLES))
        return fragment.claim.order, role, self.kind(fragment), fragment.rank

    def kind(self, fragment: Fragment) -> int:
        """Return the number of a text's kind, by which the texts of one role are sorted."""
        claim = fragment.claim
        if (
            claim.shared is not None
        ):  # the text shares a message: lore around the author's note, or lore at a component
            return _NOTE if claim.shared.key == "note" else _COMPONENT
        kind = claim.origin.partition(":")[0]
        if kind == "note" and claim.id != HISTORY_ID:  # the note is next to a component
            return _COMPONENT
        if claim.origin in _KINDS:
            return _KINDS[claim.origin]
        if kind == "note":
            return _NOTE if claim.origin == self.note else _OTHER
        return _LORE if kind == "lore" else _COMPONENT

    def merge(self, slotted: Iterable[Slotted]) -> Iterator[Slotted]:
        """Merge sorted fragments with equal place, depth, order and role, and yield the results."""
        for _, group in groupby(slotted, key=self._merge_key):
            members = list(group)
            fragments = [one[4] for one in members]
            yield (*members[0][:4], fragments[0]._replace(message=self._merge_messages(fragments)))

    def _merge_key(self, slotted: Slotted) -> tuple[int, float, float, int, int]:
        slot, depth, (order, role, _, _), index, fragment = slotted
        alone = fragment.message.stays or fragment.claim.origin in self.apart
        return slot, depth, order, role, index if alone else -1

    def _merge_messages(self, fragments: Sequence[Fragment]) -> Message:
        """Return one message for all of these fragments; equal fragments get the cached message."""
        given = [fragment.message for fragment in fragments]
        if given[0].stays:
            return given[0]
        known = given[0].memo.get(_JOINED)
        if known is not None and _are_the_same(known[0], given):
            return known[1]
        made = _join_messages(
            given, first_other=sum(self.kind(fragment) == _COMPONENT for fragment in fragments)
        )
        if made is not given[0]:
            given[0].memo[_JOINED] = given, made
        return made


def _are_the_same(known: Sequence[Message], given: Sequence[Message]) -> bool:
    return len(known) == len(given) and all(
        one is other for one, other in zip(known, given, strict=True)
    )


def _join_messages(given: Sequence[Message], *, first_other: int) -> Message:
    """Merge several messages of one role into one message.

    Texts of components keep the blanks around them. The other texts, and finally the whole
    message, lose the blanks at their start and end.

    Args:
        given: The messages, with components first.
        first_other: The index of the first message that is not from a component.
    """
    parts: list[Part] = []
    texts: list[str] = []
    at = 0
    for index, message in enumerate(given):
        text = message.content
        is_other = index >= first_other
        begins = text.lstrip() if is_other or index == 0 else text
        kept = begins.rstrip() if is_other or index == first_other - 1 else begins
        parts += _shift_parts(
            message, by=at - (len(text) - len(begins)), begin=at, end=at + len(kept)
        )
        texts.append(kept)
        at += len(kept) + len(_SEPARATOR)
    content = _SEPARATOR.join(texts)
    if len(given) == 1 and content == given[0].content:
        return given[0]
    return Message(
        role=given[0].role,
        content=content,
        block="history",
        injected=True,
        joined=tuple(parts),
    )


def _shift_parts(message: Message, *, by: int, begin: int, end: int) -> list[Part]:
    """Return the parts of a message, cut to the range of kept text and shifted by `by`."""

    def inside(at: int) -> int:
        return min(max(at + by, begin), end)

    return [replace(part, start=inside(part.start), end=inside(part.end)) for part in message.parts]


# Cached with a joined system message: the messages that it was made of.
_MEMBERS: Final = Slot[tuple[Message, ...]]("members")


def squash_system_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages with neighbouring system messages merged, joined by line feeds."""
    made: list[Message] = []
    for together, group in groupby(messages, key=_is_squashed):
        members = tuple(group)
        if together and len(members) > 1:
            made.append(_squash_messages(members))
        else:
            made += members
    return tuple(made)


def squashed_members(message: Message) -> tuple[Message, ...]:
    """Return the messages from which a joined system message was made, or the message itself."""
    return message.memo.get(_MEMBERS) or (message,)


def _is_squashed(message: Message) -> bool:
    if message.role != "system" or message.name or message.stays or message.tool_calls:
        return False
    return _ALONE.isdisjoint(message.origins)


def _squash_messages(members: tuple[Message, ...]) -> Message:
    """Return several system messages as one. The same messages reuse the cached result."""
    known = members[0].memo.get(_SQUASHED)
    if known is not None and _are_the_same(known[0], members):
        return known[1]
    parts: list[Part] = []
    at = 0
    for message in members:
        end = at + len(message.content)
        parts += _shift_parts(message, by=at, begin=at, end=end)
        at = end + len(_SEPARATOR)
    made = Message(
        role="system",
        content=_SEPARATOR.join(message.content for message in members),
        block=members[0].block,
        injected=all(message.injected for message in members),
        joined=tuple(parts),
    )
    made.memo[_MEMBERS] = members
    members[0].memo[_SQUASHED] = list(members), made
    return made
