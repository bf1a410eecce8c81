"""What the store keeps of one person: the rows that `erasing.forget_person` erases, and a few more.

What a person said aloud belongs to the rooms in which it was said. It is listed here, but only the
erasure of a room or of an old conversation erases it.
"""

import json
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.personas import Persona
from evennia_ai.store import memories
from evennia_ai.store.authored.personas import persona_of
from evennia_ai.store.erasing import private_conversations, refers_to
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.history.conversations import OF_SOMEBODY
from evennia_ai.store.history.record_rows import record_from
from evennia_ai.store.history.reports import StoredReport, reports_by

MOST_ALOUD: Final = 2_000
"""The most lines said aloud that are listed, the newest ones."""
_SAID: Final = (*OF_SOMEBODY, RecordKind.ASSISTANT, RecordKind.FALLBACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptByNPC:
    """What one NPC keeps of a person."""

    npc_ref: str
    memories: tuple[Memory, ...] = ()
    """The memories about the person."""
    private: tuple[Record, ...] = ()
    """What was said in private conversations with the person, by both."""
    aloud: tuple[Record, ...] = ()
    """What the person said or did in rooms, as this NPC heard it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """What the store keeps of a person."""

    persona: Persona | None
    npcs: tuple[KeptByNPC, ...]
    """One for each NPC that keeps something."""
    reports: tuple[StoredReport, ...]


def personal_data(person_ref: str) -> PersonalData:
    """Return what is kept of a person. It reads many rows, so call it in a thread."""
    about, private, aloud = _memories(person_ref), _private(person_ref), _aloud(person_ref)
    refs = sorted({*about, *private, *aloud}, key=lambda ref: (len(ref), ref))
    return PersonalData(
        persona=persona_of(person_ref),
        npcs=tuple(
            KeptByNPC(
                npc_ref=ref,
                memories=about.get(ref, ()),
                private=private.get(ref, ()),
                aloud=aloud.get(ref, ()),
            )
            for ref in refs
        ),
        reports=reports_by(person_ref),
    )


def npcs_keeping(person_ref: str) -> tuple[str, ...]:
    """Return the NPCs of which `forget_person` would erase words, without reading the words."""
    rows = models.Memory.objects.filter(refers_to("about", person_ref))
    refs = [
        *rows.values_list("npc_ref", flat=True).distinct(),
        *(one.npc_ref for one in private_conversations(person_ref)),
        *(one.npc_ref for one in reports_by(person_ref)),
    ]
    return tuple(dict.fromkeys(map(npc_of, refs)))


def _memories(person_ref: str) -> dict[str, tuple[Memory, ...]]:
    rows = models.Memory.objects.filter(refers_to("about", person_ref)).order_by("pk")
    wanted: dict[str, list[int]] = {}
    for row in rows.only("pk", "npc_ref"):
        wanted.setdefault(row.npc_ref, []).append(row.pk)
    return {
        ref: tuple(one for one in memories.held_by(ref).memories if one.id in ids)
        for ref, ids in wanted.items()
    }


def _private(person_ref: str) -> dict[str, tuple[Record, ...]]:
    found: dict[str, tuple[Record, ...]] = {}
    for where in private_conversations(person_ref):
        if npc_of(where.npc_ref) != where.npc_ref:  # a builder's branch, which copies the lines
            continue
        rows = models.Record.objects.filter(conversation_id=where.id, kind__in=_SAID)
        said = tuple(record_from(row) for row in rows.exclude(body="").order_by("pk"))
        if said:
            found[where.npc_ref] = (*found.get(where.npc_ref, ()), *said)
    return found


def _aloud(person_ref: str) -> dict[str, tuple[Record, ...]]:
    rows = models.Record.objects.filter(
        conversation__kind="room",
        kind__in=OF_SOMEBODY,
        meta__contains=f'"speaker":{json.dumps(person_ref)}',
    )
    found: dict[str, tuple[Record, ...]] = {}
    for row in reversed(rows.select_related("conversation").order_by("-pk")[:MOST_ALOUD]):
        ref = row.conversation.npc_ref
        if npc_of(ref) == ref:
            found[ref] = (*found.get(ref, ()), record_from(row))
    return found
