"""Characters of the game by name: NPCs for chats, players' characters for personas."""

import contextlib
import sys
from collections.abc import Iterable
from typing import Final

from evennia_ai.npc.senses.presence import HasMind, objects_with_mind
from evennia_ai.npc.views.view import char_name_of
from evennia_ai.store.authored.cards import assignment_of

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported.
    from evennia.objects.models import ObjectDB
    from evennia.objects.objects import DefaultCharacter

_MOST_NAMED: Final = 5


class Cast:
    """The NPCs of the game by name: their own, that of their card, and the one in the card."""

    def __init__(self) -> None:
        npcs = {str(number): name for number, name, *_ in objects_with_mind()}
        assignment_of.load_missing(npcs)
        self._refs: dict[str, dict[str, None]] = {}
        for ref, name in sorted(npcs.items()):
            assigned = assignment_of(ref)
            names = (name, char_name_of(name, ref), assigned.card if assigned else "")
            for one in filter(None, names):
                self._refs.setdefault(one.casefold(), {})[ref] = None

    def npcs_called(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return the IDs of the NPCs with the first of these names that any NPC has."""
        for name in names:
            if found := self._refs.get(name.casefold().strip()):
                return tuple(found)
        return ()


def which(refs: Iterable[str]) -> str:
    """Return some of these characters by their numbers, for a message."""
    named = [f"#{ref}" for ref in refs]
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"{', '.join(named[:_MOST_NAMED])}{more}"


def players_called(name: str) -> tuple[str, ...]:
    """Return the IDs of the players' characters with this name."""
    there = ObjectDB.objects.filter(db_key__iexact=name.strip()) if name.strip() else ()
    return tuple(
        str(one.id)
        for one in there
        if isinstance(one, DefaultCharacter) and not isinstance(one, HasMind)
    )


def name_of(ref: str) -> str:
    """Return the name of an object, or "" if it was deleted."""
    found = ObjectDB.objects.filter(pk=int(ref)).values_list("db_key", flat=True).first()
    return found or ""
