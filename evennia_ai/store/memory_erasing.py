"""Erasing what NPCs remember of a person: the memories, their revisions, and their text in prompts.

Rows and numbers of revisions stay, their words go. Texts of prompts that showed such a memory lose
their words in whichever conversation they stand; a record tells of it, and the rest of that
conversation stays as it is.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db.models import Q

from evennia_ai import models
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.memory.memories import Memory
from evennia_ai.store import conversations, knowledge_searches, memories, model_calls, texts
from evennia_ai.store.conversations import ConversationRef, conversations_of
from evennia_ai.store.erasing import Erased, erase_private
from evennia_ai.store.memories import record_all
from evennia_ai.store.state import MEMORIES, changing, one_transaction
from evennia_ai.store.windows import windows

OF_MEMORIES: Final = "memories"
"""In the meta of a record of an erasure: what it is of, where not of all that stood before."""

_MEMORIES_AT_ONCE: Final = 50
# What may hold a memory's text: prompts, and what models made memories of.
_KINDS: Final = (RecordKind.CONTEXT_BLOCK, RecordKind.COMPONENT_REV, RecordKind.RUN_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was erased of a person: conversations in private, memories, whose words calls answered.

    `calls` of models stay, for what they took; whom they answered is forgotten.
    """

    private: Erased
    memories: int
    calls: int = 0


def forget_person(person_ref: str, *, by: str, npc_ref: str | None = None) -> Forgotten:
    """Erase what a person whispered, looked up and is remembered for, all or none of it.

    With one NPC or, without, with every one. HistoryConflictError, StoreError: nothing was erased.
    """
    with one_transaction(f"forgetting {person_ref}"):
        # The memories first: on SQLite a transaction that reads first may not get to write.
        count = erase_about(person_ref, by=by, npc_ref=npc_ref)
        calls = model_calls.forget_player(person_ref, npc_ref=npc_ref)
        knowledge_searches.erase_of(person_ref, npc_ref=npc_ref)
        private = erase_private(person_ref, by=by, npc_ref=npc_ref)
        return Forgotten(private=private, memories=count, calls=calls)


def count_about(person_ref: str, *, npc_ref: str | None = None) -> int:
    """How many memories about a person have words, those that only revisions tell of included."""
    return len(_ids(_revisions(person_ref, npc_ref).exclude(value="")))


def people() -> tuple[str, ...]:
    """The references of all that something was ever remembered of."""
    rows = models.MemoryRevision.objects.exclude(about="").exclude(value="")
    return tuple(rows.order_by("about").values_list("about", flat=True).distinct())


def erase_about(person_ref: str, *, by: str, npc_ref: str | None = None) -> int:
    """Erase the memories about a person; how many there were, with those that were gone before."""
    with changing(MEMORIES, f"erasing the memories of {person_ref}"):
        revisions = _revisions(person_ref, npc_ref).exclude(value="")
        ids, npc_refs = _ids(revisions), set(revisions.values_list("npc_ref", flat=True))
        for ref in sorted(npc_refs):
            _end(ref, person_ref, by=by)
            for conversation in conversations_of(ref):
                _erase_texts(conversation, ids, by=by)
        revisions.update(value="")
    return len(ids)


def _revisions(person_ref: str, npc_ref: str | None) -> Any:
    """The changes of all that is about a person, which must be one: the world has no such right."""
    rows = models.MemoryRevision.objects.filter(about=person_ref).exclude(about="")
    return rows if npc_ref is None else rows.filter(npc_ref=npc_ref)


def _ids(rows: Any) -> frozenset[int]:
    return frozenset(rows.values_list("memory_id", flat=True))


def _end(npc_ref: str, person_ref: str, *, by: str) -> None:
    """Take the memories out of the table; that they were there, and who erased them, stays."""
    held = memories.held_by(npc_ref).memories
    gone: Iterable[Memory] = [memory for memory in held if memory.about == person_ref]
    models.Memory.objects.filter(npc_ref=npc_ref, about=person_ref).delete()
    ended = [replace(memory, revision=memory.revision + 1) for memory in gone]
    record_all(npc_ref, ended, action="erased", by=by)
    memories.written_past(npc_ref)


def _erase_texts(conversation: ConversationRef, ids: Collection[int], *, by: str) -> None:
    """Take the words out of the prompts' texts that showed one of these memories."""
    rows = models.Record.objects.filter(
        conversation_id=conversation.id, kind__in=[kind.value for kind in _KINDS]
    )
    listed = sorted(ids)
    count = 0
    for start in range(0, len(listed), _MEMORIES_AT_ONCE):
        shown = Q()
        for memory_id in listed[start : start + _MEMORIES_AT_ONCE]:
            shown |= Q(meta__contains=f'"memory:{memory_id}"')
        count += rows.filter(shown).erase()
    if count:
        meta = {"by": by, "of": OF_MEMORIES, "records": count}
        told = NewRecord(kind=RecordKind.ERASURE, role="system", meta=meta)
        conversations.append(conversation, [told])
        windows.written(conversation.id)
        texts.forget(conversation)
