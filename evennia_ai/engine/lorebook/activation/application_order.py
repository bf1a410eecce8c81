"""The places of active entries among their like, as SillyTavern has them: preset `sillytavern`."""

import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Final

from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry
from evennia_ai.engine.lorebook.entry import IN_HISTORY
from evennia_ai.engine.prompt.components import DEFAULT_ORDER

_NAMES: Final = [one.name for one in fields(ActiveEntry) if one.init]
_BEFORE: Final = attrgetter(*_NAMES[: _NAMES.index("stands")])
_AFTER: Final = attrgetter(*_NAMES[_NAMES.index("stands") + 1 :])
_ORDER: Final = attrgetter("order")
_LORE_ORDER: Final = 0
_SIGN: Final = 1 << 63
_ALL_BITS: Final = (1 << 64) - 1
# Roles as SillyTavern puts them at one depth, top to bottom; there order does not cross roles.
_ROLE_RANK: Final[Mapping[str, int]] = {"assistant": 0, "user": 1, "system": 2}


def as_the_application_does(entries: Sequence[ActiveEntry]) -> list[ActiveEntry]:
    """The places SillyTavern gives: equals in reverse, roles before order at one depth.

    Texts before the examples and in outlets come out with the highest order first. Where an entry
    stands hangs on those of its own order alone, so whoever comes moves few of the others.
    """
    equals, standing = Counter(map(_ORDER, entries)), list(entries)
    left = equals.copy()
    for at, entry in enumerate(entries):
        order = entry.order
        last = left[order]
        left[order] = last - 1
        stands = _application_place(entry, equals[order] - last, last)
        if entry.stands != stands:
            made_of = [*_BEFORE(entry), stands, *_AFTER(entry)]
            standing[at] = ActiveEntry(*made_of)
    return standing


def _application_place(entry: ActiveEntry, first: int, last: int) -> tuple[float, str]:
    """Where an entry stands; `first` and `last` count those of its order from either end.

    Its order decides among entries alone: beside other texts all of a place have one.
    """
    if entry.position in ("examples_before", "outlet"):
        return (_LORE_ORDER, _rising(-entry.order, first))
    rising = _rising(entry.order, last)
    if entry.position in IN_HISTORY:
        return (DEFAULT_ORDER, f"{_ROLE_RANK.get(entry.role, 2)}{rising}")
    return (_LORE_ORDER, rising)


@lru_cache(maxsize=1024)
def _rising(order: float, number: int) -> str:
    """An order, then a number, as a text that sorts as they do.

    The bits of IEEE 754 nearly do: negative ones are turned over, `+ 0.0` makes the two zeros one.
    """
    (bits,) = struct.unpack(">Q", struct.pack(">d", order + 0.0))
    return f"{bits ^ (_ALL_BITS if bits & _SIGN else _SIGN):016x}{number:06}"
