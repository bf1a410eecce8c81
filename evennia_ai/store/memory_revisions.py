"""Revisions of memories: who changed which memory of an NPC, when, and to what.

They stay when a memory goes, so that a past turn can be composed again; words about a person that
were erased on request are gone from them too.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from evennia_ai import models
from evennia_ai.history.records import canonical_json
from evennia_ai.memory.memories import Memory
from evennia_ai.store.errors import NotStoredError

# merged: learnt again. removed: by a builder. doubled: another one says the same. faded: it counted
# too little, or there were too many. erased: on request.
Action = Literal["created", "updated", "merged", "removed", "doubled", "faded", "erased"]
_ENDS: Final = frozenset({"removed", "doubled", "faded", "erased"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange:
    """One change of a memory; `value` is what it says since, None where that is nothing any more.

    `changed_at` is in epoch seconds.
    """

    memory_id: int
    npc_ref: str
    number: int
    action: Action
    changed_by: str
    changed_at: float
    value: Mapping[str, Any] | None


def record(npc_ref: str, memory: Memory, *, action: Action, by: str) -> None:
    """Write down what a memory is since its revision, in the transaction that changes it."""
    record_all(npc_ref, [memory], action=action, by=by)


def record_all(npc_ref: str, memories: Iterable[Memory], *, action: Action, by: str) -> None:
    """The same of several memories."""
    models.MemoryRevision.objects.bulk_create(
        models.MemoryRevision(
            memory_id=memory.id,
            npc_ref=npc_ref,
            about=memory.about,
            number=memory.revision,
            action=action,
            changed_by=by,
            changed_at=time.time(),
            value="" if action in _ENDS else canonical_json(dict(memory.told)),
        )
        for memory in memories
    )


def changes_of(npc_ref: str, memory_id: int) -> tuple[MemoryChange, ...]:
    """All changes of a memory, the oldest first; none where the NPC never had it."""
    rows = models.MemoryRevision.objects.filter(npc_ref=npc_ref, memory_id=memory_id)
    return tuple(_change(row) for row in rows.order_by("number"))


def memories_then(wanted: Mapping[int, tuple[int, float]]) -> tuple[Memory, ...]:
    """Memories as they were: id -> revision and when it was recalled last; in the order given.

    NotStoredError: a revision is not there, or its words were erased on request.
    """
    rows = models.MemoryRevision.objects.filter(memory_id__in=wanted)
    found = {(row.memory_id, row.number): row for row in rows}
    made = []
    for memory_id, (number, recalled_at) in wanted.items():
        row = found.get((memory_id, number))
        if row is None or not row.value:
            why = "" if row is None else ": its words are gone"
            raise NotStoredError("memory in revision", f"{memory_id} {number}{why}")
        fields = json.loads(row.value)
        made.append(Memory(id=memory_id, revision=number, recalled_at=recalled_at, **fields))
    return tuple(made)


def erase(rows: Any) -> int:
    """Erase the words of these rows; how many had any."""
    return int(rows.exclude(value="").update(value=""))


def _change(row: models.MemoryRevision) -> MemoryChange:
    return MemoryChange(
        memory_id=row.memory_id,
        npc_ref=row.npc_ref,
        number=row.number,
        action=row.action,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        value=json.loads(row.value) if row.value else None,
    )
