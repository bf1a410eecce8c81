"""Joining: texts of one depth, order and role as one message, and system messages squashed.

SillyTavern has one message for each depth, order and role: assistant above user above system. In it
components come first, by their IDs, then a summary, the author's note, the card's depth prompt, the
persona, lore, and what else notes inject. What keeps its place in the history stands alone: an
anchored note and a text that stays must read in the next prompt as they do in this one.

Squashing makes one of neighbouring system messages that have no name, wherever they stand. The
lines around the history and the headings of examples stay alone.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple

from evennia_ai.engine.prompt.assembly.rules import ALONE
from evennia_ai.engine.prompt.fragments import Fragment, Rank
from evennia_ai.engine.prompt.memo import Slot
from evennia_ai.engine.prompt.messages import Message, Part

# Slot, negative depth, rank among ties, index, fragment: how injected fragments are sorted.
Slotted = tuple[int, float, Any, int, Fragment]
# Order, role, kind, then the place among those of one kind.
RoleRank = tuple[float, int, int, Rank]

_ROLES: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}
_COMPONENT, _SUMMARY, _NOTE, _DEPTH_PROMPT, _PERSONA, _LORE, _OTHER = range(7)
# What stands where another kind does: components of these keys, and notes called so.
_KINDS: Final[Mapping[str, int]] = {
    "note:summary": _SUMMARY,
    "component:card_depth_prompt": _DEPTH_PROMPT,
    "note:depth_prompt": _DEPTH_PROMPT,
    "component:persona_description": _PERSONA,
    "note:persona": _PERSONA,
}
_SEPARATOR: Final = "\n"

EXAMPLE_HEADING: Final = "assembly:example_heading"
"""The origin of the line above a block of examples."""

_ALONE: Final = frozenset({EXAMPLE_HEADING, *(f"component:{key}" for key in ALONE)})
# The texts that were joined last with the first of them, and the message they made.
_JOINED: Final = Slot[tuple[list[Message], Message]]("joined")
_SQUASHED: Final = Slot[tuple[list[Message], Message]]("squashed")


class RoleTies(NamedTuple):
    """How ties are broken by role; `note` is the origin of the author's note."""

    note: str = ""
    apart: Collection[str] = frozenset()
    """The origins of what stands alone because it keeps its place."""

    def rank(self, fragment: Fragment) -> RoleRank:
        """The place of a fragment among those of its slot and depth."""
        role = _ROLES.get(fragment.message.role, len(_ROLES))
        return fragment.claim.order, role, self.kind(fragment), fragment.rank

    def kind(self, fragment: Fragment) -> int:
        """Which kind of text it is, by its place among those of one role."""
        claim = fragment.claim
        if (
            claim.shared is not None
        ):  # the author's note with lore around it, or lore at a component
            return _NOTE if claim.shared.key == "note" else _COMPONENT
        if claim.origin in _KINDS:
            return _KINDS[claim.origin]
        kind = claim.origin.partition(":")[0]
        if kind == "note":
            return _NOTE if claim.origin == self.note else _OTHER
        return _LORE if kind == "lore" else _COMPONENT

    def shared(self, slotted: Iterable[Slotted]) -> Iterator[Slotted]:
        """The sorted fragments, those of one slot, depth, order and role as one with their message."""
        for _, group in groupby(slotted, key=self._shares):
            members = list(group)
            fragments = [one[4] for one in members]
            yield (*members[0][:4], fragments[0]._replace(message=self._message(fragments)))

    def _shares(self, slotted: Slotted) -> tuple[int, float, float, int, int]:
        slot, depth, (order, role, _, _), index, fragment = slotted
        alone = fragment.message.stays or fragment.claim.origin in self.apart
        return slot, depth, order, role, index if alone else -1

    def _message(self, fragments: Sequence[Fragment]) -> Message:
        """The message of fragments in their order, made once as long as they are the same."""
        given = [fragment.message for fragment in fragments]
        if given[0].stays:
            return given[0]
        known = given[0].memo.get(_JOINED)
        if known is not None and _are_the_same(known[0], given):
            return known[1]
        made = _joined(
            given, first_other=sum(self.kind(fragment) == _COMPONENT for fragment in fragments)
        )
        if made is not given[0]:
            given[0].memo[_JOINED] = given, made
        return made


def _are_the_same(known: Sequence[Message], given: Sequence[Message]) -> bool:
    return len(known) == len(given) and all(
        one is other for one, other in zip(known, given, strict=True)
    )


def _joined(given: Sequence[Message], *, first_other: int) -> Message:
    """The messages as one: components as they are inside, what follows them without blanks around.

    Those before `first_other` are components; around all of them there are no blanks either.
    """
    parts: list[Part] = []
    texts: list[str] = []
    at = 0
    for index, message in enumerate(given):
        text = message.content
        is_other = index >= first_other
        begins = text.lstrip() if is_other or index == 0 else text
        kept = begins.rstrip() if is_other or index == first_other - 1 else begins
        parts += _moved(message, by=at - (len(text) - len(begins)), begin=at, end=at + len(kept))
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


def _moved(message: Message, *, by: int, begin: int, end: int) -> list[Part]:
    """The parts of a text that stands so much further on, inside what is kept of it."""

    def inside(at: int) -> int:
        return min(max(at + by, begin), end)

    return [replace(part, start=inside(part.start), end=inside(part.end)) for part in message.parts]


# The messages that a squashed one was made of.
_MEMBERS: Final = Slot[tuple[Message, ...]]("members")


def squash_system_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with neighbouring system messages joined by a line feed."""
    made: list[Message] = []
    for together, group in groupby(messages, key=_is_squashed):
        members = tuple(group)
        if together and len(members) > 1:
            made.append(_squashed(members))
        else:
            made += members
    return tuple(made)


def squashed_members(message: Message) -> tuple[Message, ...]:
    """The messages that one was made of: itself where it was not squashed."""
    return message.memo.get(_MEMBERS) or (message,)


def _is_squashed(message: Message) -> bool:
    if message.role != "system" or message.name or message.stays or message.tool_calls:
        return False
    return _ALONE.isdisjoint(message.origins)


def _squashed(members: tuple[Message, ...]) -> Message:
    """One message of several, made once as long as they are the same."""
    known = members[0].memo.get(_SQUASHED)
    if known is not None and _are_the_same(known[0], members):
        return known[1]
    parts: list[Part] = []
    at = 0
    for message in members:
        end = at + len(message.content)
        parts += _moved(message, by=at, begin=at, end=end)
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
