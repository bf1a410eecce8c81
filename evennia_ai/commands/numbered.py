"""`<npc>/<number>`: an NPC and a turn or a page of it."""

import re
from typing import Any, Final

from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.strict import CommandError
from evennia_ai.store import turns
from evennia_ai.store.turns import StoredTurn

_NUMBERED: Final = re.compile(r"(.+)/\s*(-?[0-9]{1,9})\s*")


def npc_and_number(caller: Any, text: str, *, what: str) -> tuple[Any, int | None]:
    """The NPC and the number behind it, None where there is none; `what` is what it counts."""
    found = _NUMBERED.fullmatch(text)
    if found is None:
        return npc_named(caller, text), None
    return npc_named(caller, found[1].strip()), counted_number(found[2], what=what)


def counted_number(text: str, *, what: str) -> int:
    """`text` as a number from 1 on."""
    if re.fullmatch(r"[0-9]{1,9}", text) and int(text) > 0:
        return int(text)
    raise CommandError(f"The {what} must be a whole number from 1 on; '{text}' is not.")


def turn_of(npc: Any, number: int) -> StoredTurn:
    """One turn of an NPC; CommandError says which there are."""
    last = turns.last_turn(npc.ai.ref)
    if last is None:
        raise CommandError(f"{npc.key} had no turn yet: nobody was answered.")
    if number > last.number:
        raise CommandError(f"{npc.key} had no turn {number}; the newest is {last.number}.")
    return turns.turn(npc.ai.ref, number)


def turn_or_newest(npc: Any, number: int | None) -> StoredTurn:
    """One turn of an NPC, the newest where none is named; CommandError says which there are."""
    return turn_of(npc, turns.next_number(npc.ai.ref) - 1 if number is None else number)
