"""Names in the store: whom each NPC met under which name, in the order in which they bore it.

What is settled stays: a label that was read in a prompt means the same person ever after. Nothing
but the folded name and references is kept, as in the records that show the name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from evennia_ai import models
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import changing

NAMES: Final = "names"

_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """Whom an NPC knows by name: folded name -> reference of a person -> number, from 1."""

    bearers: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def of(self, folded: str) -> Mapping[str, int]:
        """Who bears this name."""
        return self.bearers.get(folded, _NOBODY)


def known_by(npc_ref: str) -> KnownNames:
    """The names that an NPC knows; warm, this makes no query."""
    return _known.read(npc_ref)


def settle(npc_ref: str, folded: str, people: Iterable[str]) -> KnownNames:
    """Write down that these people bear a name, those who are new in this order.

    StoreError: nothing was written.
    """
    with changing(NAMES, f"settling a name that NPC {npc_ref} knows"):
        known = _load(npc_ref)
        numbers = dict(known.of(folded))
        for person in people:
            if person not in numbers:
                numbers[person] = len(numbers) + 1
                models.KnownName.objects.create(
                    npc_ref=npc_ref, folded=folded, person_ref=person, number=numbers[person]
                )
        made = KnownNames(bearers={**known.bearers, folded: numbers})
        _known.wrote(npc_ref, made)
    return made


def _load(npc_ref: str) -> KnownNames:
    rows = models.KnownName.objects.filter(npc_ref=npc_ref).order_by("folded", "number")
    bearers: dict[str, dict[str, int]] = {}
    for folded, person, number in rows.values_list("folded", "person_ref", "number"):
        bearers.setdefault(folded, {})[person] = number
    return KnownNames(bearers=bearers)


_known: Final = Snapshots(NAMES, _load)
