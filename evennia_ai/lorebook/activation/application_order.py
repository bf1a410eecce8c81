"""The places of active entries among their like, as SillyTavern has them: preset `sillytavern`."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Final

from evennia_ai.lorebook.activation.candidate import ActiveEntry
from evennia_ai.lorebook.entry import IN_HISTORY
from evennia_ai.prompt.components import DEFAULT_ORDER

_MADE_OF: Final = [one.name for one in fields(ActiveEntry) if one.init]
# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def as_the_application_does(entries: Sequence[ActiveEntry]) -> list[ActiveEntry]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first.
    """
    by_order = sorted(range(len(entries)), key=lambda at: -entries[at].order)  # stable
    last, standing = len(by_order), list(entries)
    for number, at in enumerate(by_order):
        stands = _application_place(entries[at], number, last - number)
        if entries[at].stands != stands:
            made_of = {name: getattr(entries[at], name) for name in _MADE_OF}
            standing[at] = ActiveEntry(**{**made_of, "stands": stands})
    return standing


def _application_place(entry: ActiveEntry, falling: int, rising: int) -> tuple[float, str]:
    if entry.position in ("examples_before", "outlet"):
        return (falling, "")
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising:06}")
    return (rising, "")
