"""Placing: each active entry where it asks to stand, or where its book's grants let it stand."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from evennia_ai.lorebook.awake import Candidate
from evennia_ai.lorebook.containment import contained
from evennia_ai.lorebook.entries import IN_HISTORY
from evennia_ai.lorebook.mentions import Spot
from evennia_ai.lorebook.places import ActiveEntry
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.components import DEFAULT_ORDER

# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def placed(
    active: Sequence[Candidate], *, rules: ActivationRules, spot: Callable[[Candidate], Spot]
) -> tuple[ActiveEntry, ...]:
    """The active entries with their places, in the order of their activation.

    `spot` tells where one stands that asks for the message that has its key.
    """
    if rules.flags.ties_reversed:
        return _as_the_application_does([_active(one, spot) for one in active])
    return tuple([_active(one, spot) for one in active])


def _active(one: Candidate, spot: Callable[[Candidate], Spot]) -> ActiveEntry:
    """The entry for the prompt: the same object while nothing about it changed."""
    if one.active is None:
        one.active = contained(_made(one), one.book.grants)
    if one.entry.mention is None:
        return one.active
    depth, beside = spot(one)
    if (one.active.depth, one.active.beside) != (depth, beside):
        one.active = replace(one.active, depth=depth, beside=beside)
    return one.active


def _made(one: Candidate) -> ActiveEntry:
    """The entry where it asks to stand."""
    book, entry = one.book, one.entry
    return ActiveEntry(
        origin=entry.origin,
        label=one.label,
        book=book.label,
        uid=entry.uid,
        name=entry.name,
        text=one.text,
        tokens=one.tokens,
        position=entry.position,
        depth=entry.depth,
        from_oldest=entry.from_oldest,
        outlet=entry.outlet,
        anchor=entry.anchor,
        role=entry.role,
        order=entry.order,
        stands=(entry.order, f"{one.rank:04}:{entry.index:06}"),
        priority=entry.priority,
        constant=entry.constant,
        revision=book.revision,
        cause=str(one),
        identity=one.identity,
        frozen=book.mode == "frozen",
    )


def _as_the_application_does(entries: Sequence[ActiveEntry]) -> tuple[ActiveEntry, ...]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first.
    """
    by_order = sorted(entries, key=lambda entry: -entry.order)  # stable: as they were activated
    last = len(by_order)
    stands = {
        id(entry): _application_place(entry, number, last - number)
        for number, entry in enumerate(by_order)
    }
    return tuple(replace(entry, stands=stands[id(entry)]) for entry in entries)


def _application_place(entry: ActiveEntry, falling: int, rising: int) -> tuple[float, str]:
    if entry.position in ("examples_before", "outlet"):
        return (falling, "")
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising:06}")
    return (rising, "")
