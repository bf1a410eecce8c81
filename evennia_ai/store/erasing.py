"""Erase words for good, on request or after a time. The fact that something happened stays.

Erasing a conversation removes names, texts and meta of its records, the state of its lore, and the
sources of its turns. Hashes, times and numbers stay. So the chain of records can still be checked,
and nobody can insert false records. The erasure is itself a record, which begins a new segment, and
the NPC remembers nothing from before it. That record contains new seals of the turns that lost
words. A conversation is erased completely or not at all, because a history with gaps is of no use.

Erasing a room also removes texts in other prompts that described it. Erasing memories of a person
keeps rows and revision numbers and removes the words. Texts of prompts that showed such a memory
are blanked in every conversation; a record reports this, and the rest of that conversation stays.
Workers' proposals about an erased conversation are blanked too. So are players' reports.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import time
from typing import Any, Final

from django.db.models import OuterRef, Q, QuerySet, Subquery

from evennia_ai import models
from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.manifest import (
    TurnManifest,
    text_in_row,
    without_block,
    without_words,
)
from evennia_ai.engine.history.turn.seals import SEALS
from evennia_ai.engine.memory.memories import OF_NPC, Memory
from evennia_ai.engine.prompt.names import start_of_guises, wearer_of
from evennia_ai.engine.prompt.personas import persona_key, persona_origin
from evennia_ai.models import ERASED_META
from evennia_ai.store import memories, model_calls
from evennia_ai.store.authored import personas
from evennia_ai.store.core.snapshots import MEMORIES, changing, one_change
from evennia_ai.store.history import (
    branches,
    conversations,
    errands,
    model_requests,
    reports,
)
from evennia_ai.store.history.conversations import conversations_of, refuse_other_writers
from evennia_ai.store.history.prompt_texts import (
    OF_PERSONA,
    OF_ROOMS,
    conversations_showing,
    erase_texts,
    with_origins,
)
from evennia_ai.store.history.record_rows import ConversationRef, ref_of
from evennia_ai.store.history.sealing import portable_turn
from evennia_ai.store.history.windows import HISTORY, reset_lore, windows
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.memories import record_all
from evennia_ai.store.work import proposals

_CHUNK = 200
SLICE_CONVERSATIONS: Final = 20
"""How many old conversations are erased at once."""

_DAY_SECONDS = 24 * 60 * 60
_MEMORIES_AT_ONCE: Final = 50
_ELSEWHERE_KEY: Final = "elsewhere"
_ELSEWHERE: Final = (f"block:{_ELSEWHERE_KEY}", "component:context_buffer")
"""The origins of texts that describe the NPC's other rooms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How many conversations were erased, with how many records and turns."""

    conversations: int = 0
    records: int = 0
    turns: int = 0

    def __add__(self, other: "Erased") -> "Erased":
        return Erased(
            conversations=self.conversations + other.conversations,
            records=self.records + other.records,
            turns=self.turns + other.turns,
        )


def erase_private(partner_ref: str, *, by: Actor, npc_ref: str | None = None) -> Erased:
    """Erase a player's private conversations with one NPC or with all NPCs.

    Either all of these conversations are erased or none.

    Words that the player said aloud in a room belong to the room and stay.

    Raises:
        HistoryConflictError: another process wrote to one of them; nothing was erased.
    """
    found = private_conversations(partner_ref, npc_ref)
    return _erase_conversations(
        found, by=by, doing=f"erasing the private conversations of {partner_ref}"
    )


def _count_erased(found: Iterable[ConversationRef]) -> Erased:
    """Return how much an erasure of these conversations would erase."""
    done = Erased()
    for conversation in _with_branches(found):
        if records := _records_with_words(conversation).count():
            turns = models.Turn.objects.filter(conversation_id=conversation.id).count()
            done += Erased(conversations=1, records=records, turns=turns)
    return done


def private_partners() -> tuple[str, ...]:
    """Return the references of all people who have ever had a private conversation."""
    rows = models.Conversation.objects.filter(kind="private").order_by("partner_ref")
    refs = rows.values_list("partner_ref", flat=True).distinct()
    return tuple(dict.fromkeys(map(wearer_of, refs)))


def erase_conversation(conversation: ConversationRef, *, by: Actor) -> Erased:
    """Erase one conversation. The record of the erasure names the person `by`."""
    return _erase_conversations([conversation], by=by, doing=f"erasing {conversation}")


def _erase_conversations(found: Sequence[ConversationRef], *, by: Actor, doing: str) -> Erased:
    # Read before the transaction, because on SQLite a read inside it may make the write fail.
    known = [(one, windows(one.id).end) for one in _with_branches(found)]
    done = Erased()
    with changing(HISTORY, doing, by=by):
        proposals.erase_proposals(conversation.id for conversation, _ in known)
        reports.blank_reports_about(conversation.id for conversation, _ in known)
        for conversation, end in known:
            records = _records_with_words(conversation).erase()
            if not records:
                continue
            seals = _forget_turns(conversation)
            errands.erase_errands(conversation.id)
            knowledge_searches.erase_searches(conversation.id)
            reset_lore(conversation, by=by)
            note = NewRecord(
                kind=RecordKind.ERASURE,
                role="system",
                meta={"by": by.name, "records": records, "turns": len(seals), SEALS: seals},
            )
            conversations.write_record(conversation, end.next_segment(), note)
            windows.note_change(conversation.id)
            refuse_other_writers(conversation, end)
            done += Erased(conversations=1, records=records, turns=len(seals))
    return done


def _with_branches(found: Iterable[ConversationRef]) -> list[ConversationRef]:
    """Return the conversations and their branches, which contain copies of them."""
    found = tuple(found)
    copies = (branch for one in found for branch in branches.branches_of(one))
    return list({one.id: one for one in (*found, *copies)}.values())


def erase_branches(npc_ref: str, by_ref: str, *, by: Actor) -> Erased:
    """Erase all branches of an NPC that this builder opened."""
    ref = branches.branch_ref(npc_ref, by_ref)
    return _erase_conversations(conversations_of(ref), by=by, doing=f"erasing the branches {ref}")


def private_conversations(partner_ref: str, npc_ref: str | None = None) -> list[ConversationRef]:
    """Return a player's private conversations with one NPC or with all NPCs."""
    rows = models.Conversation.objects.filter(refers_to("partner_ref", partner_ref), kind="private")
    if npc_ref is not None:
        rows = rows.filter(npc_ref=npc_ref)
    return [ref_of(row) for row in rows.order_by("pk")]


def _records_with_words(conversation: ConversationRef) -> models.AppendOnlyQuerySet:
    """Return the records that still have words, except records of erasures.

    A record with a name or a body always counts, because an imported record may have any kind or
    meta.
    """
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    wordless = Q(kind=RecordKind.ERASURE.value) | Q(meta=ERASED_META)
    return rows.exclude(wordless & Q(name="", body=""))


def _forget_turns(conversation: ConversationRef) -> dict[str, str]:
    """Erase the words of the turns, and return their new seals by turn number.

    A running turn ends with this, and its reply will be refused.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    rows.filter(state="open").update(state="failed", ended_at=time())
    return _changed_turns(rows, without_words, outcome="erased on request")


def _changed_turns(
    rows: Any, change: Callable[[TurnManifest], TurnManifest], *, naming: str = "", **values: str
) -> dict[str, str]:
    """Change the manifests of turns, and return the new seals of the ended turns, by turn number.

    Args:
        naming: A part of the JSON text of the manifests to change. Other turns stay as they are.
        values: New values for other columns. If there are none, a turn whose manifest does not
            change keeps its seal.
    """
    seals = {}
    for row in rows.order_by("pk").iterator(chunk_size=_CHUNK):
        if naming not in text_in_row(row.manifest):
            continue
        before = TurnManifest.from_row(row.manifest)
        changed = change(before)
        if changed == before and not values:
            continue
        row.manifest = changed.to_row()
        rows.filter(pk=row.pk).update(manifest=row.manifest, is_erased=True, **values)
        for column, value in values.items():
            setattr(row, column, value)
        if row.state != "open":
            seals[str(row.number)] = portable_turn(row).seal
    return seals


def forget_old(now: float, *, keep_days: int, most: int = SLICE_CONVERSATIONS) -> Erased:
    """Erase conversations that had no new record for `keep_days` days. 0 erases none.

    Each conversation has its own transaction, so an interrupted run continues the next time.

    Args:
        now: The time in seconds since 1970.
        most: How many conversations one call erases, so that turns do not wait long for the writer.
            If the result has as many, call it again.
    """
    done = Erased()
    if not keep_days:
        return done
    for row in _quiet_since(now - keep_days * _DAY_SECONDS)[:most]:
        done += erase_conversation(ref_of(row), by=trusted(f"retention after {keep_days} days"))
    return done


def _quiet_since(moment: float) -> QuerySet[models.Conversation]:
    """Return the conversations without a newer record, except those that are erased already."""
    newest = models.Record.objects.filter(conversation=OuterRef("pk")).order_by("-segment", "-seq")
    rows = models.Conversation.objects.annotate(
        newest_at=Subquery(newest.values("created_at")[:1]),
        newest_kind=Subquery(newest.values("kind")[:1]),
        newest_seq=Subquery(newest.values("seq")[:1]),
    )
    # Erasing a whole conversation begins a segment. Erasing single memories does not.
    erased = Q(newest_kind=RecordKind.ERASURE.value, newest_seq=1)
    quiet = rows.filter(newest_at__lt=moment).exclude(erased)
    return quiet.order_by("pk")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """How much was erased about a person or a room."""

    said: Erased
    """The private conversations of the person, or all conversations in the room."""
    memories: int
    calls: int = 0
    """The number of model calls that no longer name the person. Their costs are kept."""
    persona: bool = False
    """True if the person had written a persona."""
    unlearnt: int = 0
    """The room conversations in which the NPCs will no longer learn from the person's words."""
    reports: int = 0
    """The reports of the person, whose words are erased."""


def forget_person(person_ref: str, *, by: Actor, npc_ref: str | None = None) -> Forgotten:
    """Erase a person's private conversations, searches, and the memories about the person.

    This concerns one NPC or all NPCs. Either everything is erased or nothing.

    Raises:
        HistoryConflictError: another process wrote; nothing was erased.
        StoreError: the database refused; nothing was erased.
    """
    with one_change(f"forgetting {person_ref}", by=by):
        # Memories come first, because on SQLite a transaction that reads first may be refused the
        # write.
        count = erase_about(person_ref, by=by, npc_ref=npc_ref)
        calls = model_calls.forget_player(person_ref, npc_ref=npc_ref)
        knowledge_searches.erase_searches_by(person_ref, npc_ref=npc_ref)
        blanked = reports.blank_reports_by(person_ref, npc_ref=npc_ref)
        private = erase_private(person_ref, by=by, npc_ref=npc_ref)
        unlearnt = model_requests.mark_observed(person_ref, npc_ref=npc_ref)
        proposals.erase_proposals(unlearnt)
        # All NPCs know a persona, so it is erased only if the person is erased for all of them.
        persona = npc_ref is None and erase_persona(person_ref, by=by)
        return Forgotten(
            said=private,
            memories=count,
            calls=calls,
            persona=persona,
            unlearnt=len(unlearnt),
            reports=blanked,
        )


def forgettable(person_ref: str, *, npc_ref: str | None = None) -> Forgotten:
    """Return what `forget_person` would erase now, without erasing."""
    return Forgotten(
        said=_count_erased(private_conversations(person_ref, npc_ref)),
        memories=count_about(person_ref, npc_ref=npc_ref),
        calls=model_calls.count_of_player(person_ref, npc_ref=npc_ref),
        persona=npc_ref is None and has_persona(person_ref),
        unlearnt=len(model_requests.unobserved_rooms(person_ref, npc_ref=npc_ref)),
        reports=len(reports.reports_by(person_ref, npc_ref=npc_ref)),
    )


def has_persona(person_ref: str) -> bool:
    """True if the person has a persona, or a prompt has shown one."""
    is_written = personas.persona_of(person_ref) is not None
    return is_written or bool(_shown_persona(person_ref))


def erase_persona(person_ref: str, *, by: Actor) -> bool:
    """Erase a person's persona, also from every prompt that showed it and from turns' manifests.

    Returns:
        True if there was something to erase.
    """
    shown = _shown_persona(person_ref)
    for conversation in shown:
        seals = _take_block_out(conversation, persona_key(person_ref), source="persona")
        texts = [with_origins([persona_origin(person_ref)])]
        erase_texts(conversation, texts, of=OF_PERSONA, by=by, seals=seals)
    return personas.erase_persona_text(person_ref, by=by) or bool(shown)


def _shown_persona(person_ref: str) -> list[ConversationRef]:
    """Return the conversations whose prompts show a person's persona."""
    return conversations_showing(with_origins([persona_origin(person_ref)]))


def _take_block_out(conversation: ConversationRef, key: str, *, source: str) -> dict[str, str]:
    """Remove a block of facts, and a source of lore, from the manifests of a conversation's turns.

    Returns:
        New seals of the turns that have ended, by number.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    change = partial(without_block, key=key, source=source)
    return _changed_turns(rows, change, naming=f'"{key}"')


def refers_to(field: str, person_ref: str) -> Q:
    """Return a query condition: the field names the person, or one of the person's disguises."""
    in_guise = Q(**{f"{field}__startswith": start_of_guises(person_ref)})
    return Q(**{field: person_ref}) | in_guise


def count_about(person_ref: str, *, npc_ref: str | None = None) -> int:
    """Return how many memories about a person still have words, removed memories included."""
    return len(_ids(_revisions(person_ref, npc_ref).exclude(value="")))


def people() -> tuple[str, ...]:
    """Return the references of all people about whom NPCs have ever had memories."""
    rows = models.MemoryRevision.objects.exclude(about="").exclude(value="")
    refs = rows.order_by("about").values_list("about", flat=True).distinct()
    return tuple(dict.fromkeys(map(wearer_of, refs)))


def erase_about(person_ref: str, *, by: Actor, npc_ref: str | None = None) -> int:
    """Erase the memories about a person, removed ones included, and return their number."""
    revisions = _revisions(person_ref, npc_ref).exclude(value="")
    return _erase_memories(
        revisions,
        by=by,
        is_gone=lambda memory: wearer_of(memory.about) == person_ref,
        doing=f"erasing the memories of {person_ref}",
    )


def room_refs() -> tuple[str, ...]:
    """Return the references of all rooms with conversations, also of rooms that no longer exist."""
    rows = models.Conversation.objects.filter(kind="room").order_by("place_ref")
    return tuple(rows.values_list("place_ref", flat=True).distinct())


def npcs_of_room(place_ref: str) -> tuple[str, ...]:
    """Return the references of the NPCs whose conversation in a room is not erased."""
    found = [one.npc_ref for one in _of_room(place_ref) if _records_with_words(one).exists()]
    return tuple(dict.fromkeys(found))


def erasable_room(place_ref: str) -> Forgotten:
    """Return what `forget_room` would erase now, without erasing."""
    memories_there = _learnt_in(place_ref).count()
    return Forgotten(said=_count_erased(_of_room(place_ref)), memories=memories_there)


def forget_room(place_ref: str, *, by: Actor) -> Forgotten:
    """Erase the conversations of all NPCs in a room, and what the NPCs learnt from them.

    Private conversations and builders' texts stay.

    Raises:
        HistoryConflictError: another process wrote; nothing was erased.
        StoreError: the database refused; nothing was erased.
    """
    doing = f"forgetting room {place_ref}"
    with one_change(doing, by=by):
        # Memories come first, because on SQLite a transaction that reads first may be refused the
        # write.
        count = _erase_learnt_in(place_ref, by=by, doing=doing)
        rooms = _of_room(place_ref)
        for where in {one.npc_ref: one for one in rooms}.values():
            _erase_told_elsewhere(where, by=by)
        return Forgotten(said=_erase_conversations(rooms, by=by, doing=doing), memories=count)


def _erase_told_elsewhere(room: ConversationRef, *, by: Actor) -> None:
    """Erase texts that describe other rooms from the prompts of the NPC's other conversations."""
    others = (one for one in conversations_of(room.npc_ref) if one.id != room.id)
    for other in _with_branches(others):
        seals = _take_block_out(other, _ELSEWHERE_KEY, source=_ELSEWHERE_KEY)
        erase_texts(other, [with_origins(_ELSEWHERE)], of=OF_ROOMS, by=by, seals=seals)


def _of_room(place_ref: str) -> list[ConversationRef]:
    rows = models.Conversation.objects.filter(kind="room", place_ref=place_ref).order_by("pk")
    own = [ref_of(row) for row in rows]
    return [one for one in own if branches.npc_of(one.npc_ref) == one.npc_ref]


def _learnt_in(place_ref: str) -> Any:
    """Return the memories that NPCs formed themselves from words said aloud in a room."""
    return models.Memory.objects.filter(place_ref=place_ref, author=OF_NPC, learnt="aloud")


def _erase_learnt_in(place_ref: str, *, by: Actor, doing: str) -> int:
    ids = frozenset(_learnt_in(place_ref).values_list("pk", flat=True))
    revisions = models.MemoryRevision.objects.filter(memory_id__in=ids)
    return _erase_memories(revisions, by=by, is_gone=lambda memory: memory.id in ids, doing=doing)


def _erase_memories(
    revisions: Any, *, by: Actor, is_gone: Callable[[Memory], bool], doing: str
) -> int:
    """Erase the words of these revisions of memories, and remove the memories.

    Args:
        is_gone: Decides which memories of the NPCs are removed.

    Returns:
        The number of memories to which the revisions belonged.
    """
    with changing(MEMORIES, doing, by=by):
        ids, npc_refs = _ids(revisions), set(revisions.values_list("npc_ref", flat=True))
        for ref in sorted(npc_refs):
            _remove_memories(ref, is_gone, by=by)
            for conversation in _with_branches(conversations_of(ref)):
                erase_texts(conversation, _of_memories(ids), by=by)
        revisions.update(value="")
    return len(ids)


def _revisions(person_ref: str, npc_ref: str | None) -> Any:
    """Return the revisions of memories about a person.

    Memories about the world have no person, so they are never among them.
    """
    rows = models.MemoryRevision.objects.filter(refers_to("about", person_ref)).exclude(about="")
    return rows if npc_ref is None else rows.filter(npc_ref=npc_ref)


def _ids(rows: Any) -> frozenset[int]:
    return frozenset(rows.values_list("memory_id", flat=True))


def _remove_memories(npc_ref: str, is_gone: Callable[[Memory], bool], *, by: Actor) -> None:
    """Remove memories from the table, and record who erased them."""
    gone = [memory for memory in memories.held_by(npc_ref).memories if is_gone(memory)]
    models.Memory.objects.filter(pk__in=[memory.id for memory in gone]).delete()
    ended = [replace(memory, revision=memory.revision + 1) for memory in gone]
    record_all(npc_ref, ended, action="erased", by=by)
    memories.note_memories_written(npc_ref)


def _of_memories(ids: Collection[int]) -> list[Q]:
    """Yield query conditions for texts of prompts that showed one of these memories, in batches."""
    listed = sorted(ids)
    starts = range(0, len(listed), _MEMORIES_AT_ONCE)
    return [
        with_origins(f"memory:{one}" for one in listed[start : start + _MEMORIES_AT_ONCE])
        for start in starts
    ]
