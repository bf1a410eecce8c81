"""Store memories of NPCs, their changes, and the names by which NPCs know people.

When a prompt was sent, the turn stores which memories it recalled. This is not a change of the
memory, and other processes are not notified. Revisions stay when a memory is removed, so that a
past turn can be composed again. An erasure on request removes their words.

Several people may have the same name. They are numbered in the order in which the NPC met them, so
a label in a prompt always means the same person.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME, Actor
from evennia_ai.engine.errors import ComponentValueError, NotStoredError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.memory.memories import (
    LEARNT,
    LEAST_IMPORTANT,
    MAX_TEXT,
    MOST_IMPORTANT,
    Memory,
    MemorySet,
    is_importance,
    is_text,
    surplus_memories,
)
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.store.core.authoring import Change, Revisions
from evennia_ai.store.core.inserting import Insert
from evennia_ai.store.core.snapshots import MEMORIES, Snapshots, changing, value_of

# merged: the NPC learnt it again. removed: by a builder. doubled: another memory has the same
# content. faded: it was too weak, or there were too many. erased: on request.
Action = Literal["created", "updated", "merged", "removed", "doubled", "faded", "erased"]
_ENDS: Final = frozenset({"removed", "doubled", "faded", "erased"})

WORTH_WRITING_HOURS: Final = 1.0
"""A recall is stored only if the last stored one is at least this many game hours ago."""

NEW: Final = 0
"""The id of a memory that is not stored yet."""

_revisions: Final = Revisions(models.MemoryRevision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """The result of adding a memory."""

    memory: Memory
    is_merged: bool = False
    dropped: tuple[Memory, ...] = ()
    """The memories that were dropped because the NPC had too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChange(Change):
    """One change of a memory."""

    memory_id: int
    npc_ref: str
    action: Action
    value: Mapping[str, Any] | None
    """The memory after the change; None if it was removed or erased."""


def get_memory(npc_ref: str, memory_id: int) -> Memory:
    """Return one memory.

    Raises:
        NotStoredError: the NPC has no memory with this id.
    """
    return _found(held_by(npc_ref), npc_ref, memory_id)


def add_memory(npc_ref: str, new: Memory, *, by: Actor, most: int) -> Added:
    """Store a new memory. If the NPC has one with the same content, strengthen that one.

    If the NPC then has more than `most` memories, the weakest are dropped.

    Args:
        new: A memory with the id `NEW`.

    Raises:
        ComponentValueError: a value is not allowed.
    """
    _check(new)
    with changing(MEMORIES, f"adding a memory of NPC {npc_ref}", by=by):
        held = _load(npc_ref)
        known = held.find_same(new)
        if known is not None:
            merged = _merged_memory(npc_ref, known, new, by=by)
            return Added(memory=merged, is_merged=True)
        made = _insert_memory(npc_ref, new)
        record_all(npc_ref, [made], action="created", by=by)
        dropped = surplus_memories(held.with_memory(made), most=most, hours=new.created_at)
        _end(npc_ref, dropped, action="faded", by=by)
        held_by.note_change(npc_ref)
    return Added(memory=made, dropped=tuple(dropped))


def change_memory(npc_ref: str, memory_id: int, *, by: Actor, **given: Any) -> Memory:
    """Change the text or the importance of a memory, and return it.

    Raises:
        NotStoredError: there is none with this id.
        ComponentValueError: a value is not allowed.
    """
    with changing(MEMORIES, f"changing memory {memory_id} of NPC {npc_ref}", by=by):
        old = _found(_load(npc_ref), npc_ref, memory_id)
        new = replace(old, **given, _memo=Memo())
        if new == old:
            return old
        _check(new)
        return _changed(npc_ref, new, action="updated", by=by)


def remove_memory(npc_ref: str, memory_id: int, *, by: Actor) -> Memory:
    """Remove a memory and return it.

    Raises:
        NotStoredError: there is none with this id.
    """
    with changing(MEMORIES, f"removing memory {memory_id} of NPC {npc_ref}", by=by):
        gone = _found(_load(npc_ref), npc_ref, memory_id)
        _end(npc_ref, [gone], action="removed", by=by)
        held_by.note_change(npc_ref)
    return gone


def merge_memories(npc_ref: str, kept: Memory, others: Iterable[Memory], *, by: Actor) -> Memory:
    """Merge memories with the same content into `kept`, and return the result."""
    with changing(MEMORIES, f"merging memories of NPC {npc_ref}", by=by):
        merged = kept
        for other in others:
            merged = _merged_memory(npc_ref, merged, other, by=by)
            _end(npc_ref, [other], action="doubled", by=by)
    return merged


def fade_memories(npc_ref: str, ids: Iterable[int], *, by: Actor) -> int:
    """Drop memories that have become too weak, and return how many there were."""
    wanted = frozenset(ids)
    with changing(MEMORIES, f"fading memories of NPC {npc_ref}", by=by):
        gone = [memory for memory in _load(npc_ref).memories if memory.id in wanted]
        _end(npc_ref, gone, action="faded", by=by)
        held_by.note_change(npc_ref)
    return len(gone)


def mark_recalled(npc_ref: str, ids: Iterable[int], *, at_hours: float) -> None:
    """Store that these memories were recalled, inside the transaction that writes the turn.

    Memories whose stored recall is recent are left unchanged.
    """
    wanted = frozenset(ids)
    held = held_by(npc_ref)
    stale = [
        memory.id
        for memory in held.memories
        if memory.id in wanted and at_hours - memory.recalled_at >= WORTH_WRITING_HOURS
    ]
    if not stale:
        return
    models.Memory.objects.filter(npc_ref=npc_ref, pk__in=stale).update(recalled_at=at_hours)
    again = (
        replace(memory, recalled_at=at_hours) if memory.id in stale else memory
        for memory in held.memories
    )
    held_by.note_value(npc_ref, MemorySet(tuple(again)))


def changes_of(npc_ref: str, memory_id: int) -> tuple[MemoryChange, ...]:
    """Return all changes of a memory, oldest first.

    The result is empty if the NPC never had such a memory.
    """
    return tuple(
        value_of(MemoryChange, row, value=json.loads(row.value) if row.value else None)
        for row in _revisions.of(npc_ref=npc_ref, memory_id=memory_id)
    )


def memories_then(wanted: Mapping[int, tuple[int, float]]) -> tuple[Memory, ...]:
    """Return memories as they were in earlier revisions, in the given order.

    Args:
        wanted: The revision and the time of the last recall of each memory, by id.

    Raises:
        NotStoredError: a revision is missing, or its words were erased.
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


def record_all(npc_ref: str, memories: Iterable[Memory], *, action: Action, by: Actor) -> None:
    """Store revisions of memories inside the transaction that changes them."""
    _revisions.write_all(
        [
            {
                "memory_id": memory.id,
                "npc_ref": npc_ref,
                "about": memory.about,
                "number": memory.revision,
                "action": action,
                "value": "" if action in _ENDS else canonical_json(dict(memory.revision_fields)),
            }
            for memory in memories
        ],
        by=by,
    )


def note_memories_written(npc_ref: str) -> None:
    """Note that the current transaction changed memories of the NPC without these functions."""
    held_by.note_change(npc_ref)


def _merged_memory(npc_ref: str, known: Memory, new: Memory, *, by: Actor) -> Memory:
    """Return a known memory after the NPC learnt it again: more important and just recalled."""
    importance = min(MOST_IMPORTANT, max(known.importance, new.importance) + 1)
    recalled_at = max(known.recalled_at, new.recalled_at)
    again = replace(known, importance=importance, recalled_at=recalled_at)
    return _changed(npc_ref, again, action="merged", by=by)


def _changed(npc_ref: str, new: Memory, *, action: Action, by: Actor) -> Memory:
    new = replace(new, revision=new.revision + 1)
    models.Memory.objects.filter(npc_ref=npc_ref, pk=new.id).update(**_columns(new))
    record_all(npc_ref, [new], action=action, by=by)
    held_by.note_change(npc_ref)
    return new


def _insert_memory(npc_ref: str, new: Memory) -> Memory:
    row = models.Memory.objects.create(npc_ref=npc_ref, **_columns(new))
    return replace(new, id=row.pk)


def _columns(memory: Memory) -> dict[str, Any]:
    return {name: getattr(memory, name) for name in _COLUMNS if name != "id"}


def _end(npc_ref: str, gone: Iterable[Memory], *, action: Action, by: Actor) -> None:
    ended = [replace(memory, revision=memory.revision + 1) for memory in gone]
    if ended:
        ids = [memory.id for memory in ended]
        models.Memory.objects.filter(npc_ref=npc_ref, pk__in=ids).delete()
        record_all(npc_ref, ended, action=action, by=by)


def _found(held: MemorySet, npc_ref: str, memory_id: int) -> Memory:
    found = held.find(memory_id)
    if found is None:
        raise NotStoredError(f"memory of NPC {npc_ref}", memory_id)
    return found


def _check(memory: Memory) -> None:
    for name, (wanted, accepts) in _CHECKS.items():
        value = getattr(memory, name)
        if not accepts(value):
            raise ComponentValueError(f"the memory's {name}", value, wanted)


_CHECKS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = MappingProxyType(
    {
        "text": (f"one line of 1 to {MAX_TEXT} characters", is_text),
        "importance": (
            f"a whole number from {LEAST_IMPORTANT} to {MOST_IMPORTANT}",
            is_importance,
        ),
        "learnt": ("one of " + ", ".join(LEARNT), lambda value: value in LEARNT),
    }
)
_COLUMNS: Final = tuple(field.name for field in fields(Memory) if field.name != "_memo")


def _load(npc_ref: str) -> MemorySet:
    return _load_each([npc_ref])[npc_ref]


def _load_each(npc_refs: Sequence[str]) -> Mapping[str, MemorySet]:
    of_each: dict[str, list[Memory]] = {npc_ref: [] for npc_ref in npc_refs}
    rows = models.Memory.objects.filter(npc_ref__in=npc_refs).order_by("pk")
    for row in rows.values("npc_ref", *_COLUMNS):
        of_each[row.pop("npc_ref")].append(Memory(**row))
    return {npc_ref: MemorySet(tuple(memories)) for npc_ref, memories in of_each.items()}


held_by: Final = Snapshots(MEMORIES, _load, load_each=_load_each)
"""Return all memories of an NPC.

Every call returns the same object until a memory changes. No query is made if it is in memory.
"""


NAMES: Final = "names"

KnownNames = Mapping[str, Mapping[str, int]]
"""For each folded name: the people whom the NPC knows by it, with their numbers from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewlyNamed:
    """People to whom one NPC is about to give a name."""

    npc_ref: str
    folded: str
    people: Sequence[str]
    """The references of the people. New ones get their numbers in this order."""


def settle_names(wanted: Sequence[NewlyNamed]) -> Mapping[str, KnownNames]:
    """Store which person has which name for several NPCs, and return all names that they know.

    The number of queries does not depend on the number of NPCs.

    Raises:
        StoreError: nothing was written.
    """
    refs = [one.npc_ref for one in wanted]
    with changing(NAMES, f"storing the names that NPCs {', '.join(refs)} know", by=THE_GAME):
        known = dict(_load_names_of(refs))
        rows: list[tuple[str, str, str, int]] = []
        for one in wanted:
            numbers = dict(known[one.npc_ref].get(one.folded, {}))
            for person in one.people:
                if person not in numbers:
                    numbers[person] = len(numbers) + 1
                    rows.append((one.npc_ref, one.folded, person, numbers[person]))
            known[one.npc_ref] = {**known[one.npc_ref], one.folded: numbers}
        _insert_names(rows)
        for npc_ref, names in known.items():
            names_known_by.note_value(npc_ref, names)
    return known


_insert_names: Final = Insert(models.KnownName, ("npc_ref", "folded", "person_ref", "number"))


def _load_names(npc_ref: str) -> KnownNames:
    return _load_names_of([npc_ref])[npc_ref]


def _load_names_of(npc_refs: Sequence[str]) -> Mapping[str, KnownNames]:
    rows = models.KnownName.objects.filter(npc_ref__in=npc_refs).order_by("folded", "number")
    bearers: dict[str, dict[str, dict[str, int]]] = {npc_ref: {} for npc_ref in npc_refs}
    for npc_ref, folded, person, number in rows.values_list(
        "npc_ref", "folded", "person_ref", "number"
    ):
        bearers[npc_ref].setdefault(folded, {})[person] = number
    return bearers


names_known_by: Final = Snapshots(NAMES, _load_names, load_each=_load_names_of)
"""Return the names by which an NPC knows people. No query is made if they are in memory."""
