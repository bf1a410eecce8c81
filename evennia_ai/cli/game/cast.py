"""Characters of the game by name: NPCs for chats, players' characters for personas."""

import contextlib
import re
import sys
from collections.abc import Collection, Iterable
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.npc.senses.presence import HasMind, objects_with_mind
from evennia_ai.npc.views.view import char_name_of
from evennia_ai.store.authored.cards import assignment_of

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported.
    from evennia.objects.models import ObjectDB
    from evennia.objects.objects import DefaultCharacter

REF: Final = re.compile(r"#([0-9]{1,18})")
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


def npc_called(wanted: str) -> str:
    """Return the ID of the NPC with this name or number ("#12")."""
    by_ref = REF.fullmatch(wanted)
    meant = {"id": by_ref[1]} if by_ref else {"db_key__iexact": wanted}
    there: Iterable[Any] = ObjectDB.objects.filter(**meant)
    found = [str(one.id) for one in there if issubclass(type(one), HasMind)]
    return only_one(found, wanted, did="has a mind")


def only_one(found: Collection[str], wanted: str, *, did: str) -> str:
    """Return the only ID in `found`. `did` says what the wanted NPC did.

    Raises:
        FormatError: No NPC or several were found.
    """
    if len(found) == 1:
        return next(iter(found))
    if found:
        numbers = ", ".join(f"#{one}" for one in sorted(found, key=int))
        raise FormatError("npc", f"'{wanted}' could be {numbers}; name one by its number")
    raise FormatError(
        "npc", f"no NPC called '{wanted}' {did}; use its name in the game, or its number as #12"
    )


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
