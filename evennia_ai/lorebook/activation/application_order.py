"""The places of active entries among their like, as SillyTavern has them: preset `sillytavern`."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Final

from evennia_ai.lorebook.activation.candidate import ActiveEntry
from evennia_ai.lorebook.entry import IN_HISTORY
from evennia_ai.prompt.components import DEFAULT_ORDER

_NAMES: Final = [one.name for one in fields(ActiveEntry) if one.init]
_BEFORE: Final = attrgetter(*_NAMES[: _NAMES.index("stands")])
_AFTER: Final = attrgetter(*_NAMES[_NAMES.index("stands") + 1 :])
# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def as_the_application_does(entries: Sequence[ActiveEntry]) -> list[ActiveEntry]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first.
    """
    by_order = sorted(range(len(entries)), key=lambda at: -entries[at].order)  # stable
    last, standing = len(by_order), list(entries)
    for number, at in enumerate(by_order):
        entry = entries[at]
        stands = _application_place(entry, number, last - number)
        if entry.stands != stands:  # whoever comes moves nearly all
            made_of = [*_BEFORE(entry), stands, *_AFTER(entry)]
            standing[at] = ActiveEntry(*made_of)
    return standing


def _application_place(entry: ActiveEntry, falling: int, rising: int) -> tuple[float, str]:
    if entry.position in ("examples_before", "outlet"):
        return (falling, "")
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising:06}")
    return (rising, "")
