"""Past turns: the newest ones, the one before another, and all of them as a stream.

Turns are read as they are asked for, so what goes through a hundred thousand of them holds one.
"""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai import models
from evennia_ai.store.turns import StoredTurn, turn_from

_CHUNK: Final = 200


def newest_turns(npc_ref: str, count: int) -> tuple[StoredTurn, ...]:
    """The newest turns of an NPC, at most `count`, oldest first."""
    rows = list(_turns(npc_ref).order_by("-number")[:count])
    return tuple(turn_from(row) for row in reversed(rows))


def turn_before(turn: StoredTurn) -> StoredTurn | None:
    """The turn before this one in its conversation."""
    rows = _turns(turn.npc_ref).filter(conversation_id=turn.conversation.id, number__lt=turn.number)
    row = rows.order_by("-number").first()
    return None if row is None else turn_from(row)


def count_of_turns(npc_ref: str) -> int:
    """How many turns an NPC had."""
    return _turns(npc_ref).count()


def turns_in_order(npc_ref: str, *, newest: int | None = None) -> Iterator[StoredTurn]:
    """The turns of an NPC, oldest first, only the `newest` of them where that is given."""
    rows = _turns(npc_ref)
    if newest is not None:
        numbers = rows.order_by("-number").values_list("number", flat=True)
        first = next(iter(numbers[newest - 1 : newest]), None) if newest > 0 else None
        if first is not None:
            rows = rows.filter(number__gte=first)
    after = 0
    while True:
        chunk = list(rows.filter(number__gt=after).order_by("number")[:_CHUNK])
        yield from map(turn_from, chunk)
        if len(chunk) < _CHUNK:
            return
        after = chunk[-1].number


def npc_refs() -> tuple[str, ...]:
    """The references of all NPCs that ever had a turn."""
    found = models.Turn.objects.order_by("npc_ref").values_list("npc_ref", flat=True)
    return tuple(found.distinct())


def _turns(npc_ref: str) -> Any:
    return models.Turn.objects.filter(npc_ref=npc_ref).select_related("conversation")
