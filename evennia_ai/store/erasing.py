"""Erasing: words go for good, on request or after a while; that something was said stays.

Of a conversation names, bodies and meta of the records go, the lore's memory and what the turns
were made from; hashes, times and numbers stay, so the chain still holds and nobody can slip in what
was never said. An erasure is a record itself, first of a new segment: an NPC remembers nothing of
what was before it. The record holds new seals of the turns that lost words. A conversation is
erased as a whole: a history with holes would be none.

Of a room that is forgotten, prompts elsewhere that told of other rooms lose their words too.

Of what is remembered of a person rows and numbers of revisions stay, their words go. Texts of
prompts that showed such a memory lose their words in whichever conversation they stand; a record
tells of it, and the rest of that conversation stays as it is.

What workers offered of a conversation loses its words with it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import time
from typing import Any, Final

from django.db.models import OuterRef, Q, Subquery

from evennia_ai import models
from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.manifest import TurnManifest, without_block, without_words
from evennia_ai.engine.history.turn.seals import SEALS
from evennia_ai.engine.memory.memories import OF_NPC, Memory
from evennia_ai.engine.prompt.names import start_of_guises, wearer_of
from evennia_ai.engine.prompt.personas import persona_key, persona_origin
from evennia_ai.models import ERASED_META
from evennia_ai.store import memories, model_calls
from evennia_ai.store.authored import personas
from evennia_ai.store.core.snapshots import MEMORIES, changing, one_change
from evennia_ai.store.history import branches, conversations, errands, model_requests
from evennia_ai.store.history.conversations import conversations_of, refuse_what_came_between
from evennia_ai.store.history.prompt_texts import (
    OF_PERSONA,
    OF_ROOMS,
    conversations_showing,
    erase_texts,
    holding,
)
from evennia_ai.store.history.record_rows import ConversationRef, ref_of
from evennia_ai.store.history.sealing import portable_turn
from evennia_ai.store.history.windows import HISTORY, reset_lore, windows
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.memories import record_all
from evennia_ai.store.work import proposals

_CHUNK = 200

_DAY_SECONDS = 24 * 60 * 60
_MEMORIES_AT_ONCE: Final = 50
_ELSEWHERE_KEY: Final = "elsewhere"
_ELSEWHERE: Final = (f"block:{_ELSEWHERE_KEY}", "component:context_buffer")
"""The origins of texts that tell what an NPC lived through in other rooms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How many conversations were erased, and how many records and turns of them."""

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
    """Erase all private conversations of one player with one NPC or with any, all or none.

    What the player said aloud in a room belongs to the room and stays. HistoryConflictError:
    another process wrote to one of them at the same moment; nothing was erased.
    """
    found = _private(partner_ref, npc_ref)
    return _erased(found, by=by, doing=f"erasing the private conversations of {partner_ref}")


def _counted(found: Iterable[ConversationRef]) -> Erased:
    """What erasing these would erase, as it would count it."""
    done = Erased()
    for conversation in _with_branches(found):
        if records := _wordy(conversation).count():
            turns = models.Turn.objects.filter(conversation_id=conversation.id).count()
            done += Erased(conversations=1, records=records, turns=turns)
    return done


def private_partners() -> tuple[str, ...]:
    """The references of all who ever had a private conversation, also of those who are gone."""
    rows = models.Conversation.objects.filter(kind="private").order_by("partner_ref")
    refs = rows.values_list("partner_ref", flat=True).distinct()
    return tuple(dict.fromkeys(map(wearer_of, refs)))


def erase_conversation(conversation: ConversationRef, *, by: Actor) -> Erased:
    """Erase one conversation; `by` is who asked for it, and is recorded."""
    return _erased([conversation], by=by, doing=f"erasing {conversation}")


def _erased(found: Sequence[ConversationRef], *, by: Actor, doing: str) -> Erased:
    # Read before the transaction: on SQLite one that reads first may not get to write.
    known = [(one, windows(one.id).end) for one in _with_branches(found)]
    done = Erased()
    with changing(HISTORY, doing, by=by):
        proposals.erase(conversation.id for conversation, _ in known)
        for conversation, end in known:
            records = _wordy(conversation).erase()
            if not records:
                continue
            seals = _forget_turns(conversation)
            errands.erase(conversation.id)
            knowledge_searches.erase(conversation.id)
            reset_lore(conversation, by=by)
            note = NewRecord(
                kind=RecordKind.ERASURE,
                role="system",
                meta={"by": by.name, "records": records, "turns": len(seals), SEALS: seals},
            )
            conversations.written(conversation, end.next_segment(), note)
            windows.written(conversation.id)
            refuse_what_came_between(conversation, end)
            done += Erased(conversations=1, records=records, turns=len(seals))
    return done


def _with_branches(found: Iterable[ConversationRef]) -> list[ConversationRef]:
    """The conversations, and the branches that copy what was said in them."""
    found = tuple(found)
    copies = (branch for one in found for branch in branches.branches_of(one))
    return list({one.id: one for one in (*found, *copies)}.values())


def erase_branches(npc_ref: str, by_ref: str, *, by: Actor) -> Erased:
    """Erase all branches of an NPC that a builder opened."""
    ref = branches.branch_ref(npc_ref, by_ref)
    return _erased(conversations_of(ref), by=by, doing=f"erasing the branches {ref}")


def _private(partner_ref: str, npc_ref: str | None) -> list[ConversationRef]:
    rows = models.Conversation.objects.filter(_is_of("partner_ref", partner_ref), kind="private")
    if npc_ref is not None:
        rows = rows.filter(npc_ref=npc_ref)
    return [ref_of(row) for row in rows.order_by("pk")]


def _wordy(conversation: ConversationRef) -> models.AppendOnlyQuerySet:
    """The records that have words; those that tell of an erasure keep them.

    Neither a kind nor a meta excuses a name or a body: an imported record may have any of them.
    """
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    wordless = Q(kind=RecordKind.ERASURE.value) | Q(meta=ERASED_META)
    return rows.exclude(wordless & Q(name="", body=""))


def _forget_turns(conversation: ConversationRef) -> dict[str, str]:
    """Erase the words of the turns; return the seals of what is left, by the numbers of the turns.

    A turn that is under way ends here, and its reply comes too late.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    rows.filter(state="open").update(state="failed", ended_at=time())
    return _changed_turns(rows, without_words, outcome="erased on request")


def _changed_turns(
    rows: Any, change: Callable[[TurnManifest], TurnManifest], **values: str
) -> dict[str, str]:
    """Change the manifests of turns; return new seals of those that have ended, by number.

    `values` are set in the other columns of each row. Without any, a turn that stays as it was
    keeps its seal.
    """
    seals = {}
    for row in rows.order_by("pk").iterator(chunk_size=_CHUNK):
        changed = change(TurnManifest.from_json(row.manifest)).to_json()
        if changed == row.manifest and not values:
            continue
        row.manifest = changed
        rows.filter(pk=row.pk).update(manifest=row.manifest, **values)
        for column, value in values.items():
            setattr(row, column, value)
        if row.state != "open":
            seals[str(row.number)] = portable_turn(row).seal
    return seals


def forget_old(now: float, *, keep_days: int) -> Erased:
    """Erase the conversations in which nothing happened for `keep_days` days; 0 keeps them all.

    `now` is in epoch seconds. Each conversation is a transaction of its own, so a game that stops
    in the middle goes on the next time.
    """
    done = Erased()
    if not keep_days:
        return done
    for row in _quiet_since(now - keep_days * _DAY_SECONDS):
        done += erase_conversation(ref_of(row), by=trusted(f"retention after {keep_days} days"))
    return done


def _quiet_since(moment: float) -> list[models.Conversation]:
    """The conversations whose newest record is older, without those that are erased already."""
    newest = models.Record.objects.filter(conversation=OuterRef("pk")).order_by("-segment", "-seq")
    rows = models.Conversation.objects.annotate(
        newest_at=Subquery(newest.values("created_at")[:1]),
        newest_kind=Subquery(newest.values("kind")[:1]),
        newest_seq=Subquery(newest.values("seq")[:1]),
    )
    # An erasure of the conversation begins a segment; one of single memories does not.
    erased = Q(newest_kind=RecordKind.ERASURE.value, newest_seq=1)
    quiet = rows.filter(newest_at__lt=moment).exclude(erased)
    return list(quiet.order_by("pk"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """What was erased of a person, or of a room."""

    said: Erased
    """Their conversations: what was whispered, or what was said in the room."""
    memories: int
    calls: int = 0
    """Calls of models stay, for what they took; whom they answered is forgotten."""
    persona: bool = False
    """True if there was what the person wrote of themselves."""
    unlearnt: int = 0
    """Rooms, an NPC's each, that it was still to learn from, with what the person said aloud."""


def forget_person(person_ref: str, *, by: Actor, npc_ref: str | None = None) -> Forgotten:
    """Erase what a person whispered, looked up and is remembered for, all or none of it.

    With one NPC or, without, with every one. HistoryConflictError, StoreError: nothing was erased.
    """
    with one_change(f"forgetting {person_ref}", by=by):
        # The memories first: on SQLite a transaction that reads first may not get to write.
        count = erase_about(person_ref, by=by, npc_ref=npc_ref)
        calls = model_calls.forget_player(person_ref, npc_ref=npc_ref)
        knowledge_searches.erase_of(person_ref, npc_ref=npc_ref)
        private = erase_private(person_ref, by=by, npc_ref=npc_ref)
        unlearnt = model_requests.observe_no_more(person_ref, npc_ref=npc_ref)
        proposals.erase(unlearnt)
        # What somebody writes of themselves is told to all NPCs: it goes where all forget.
        persona = npc_ref is None and erase_persona(person_ref, by=by)
        return Forgotten(
            said=private, memories=count, calls=calls, persona=persona, unlearnt=len(unlearnt)
        )


def forgettable(person_ref: str, *, npc_ref: str | None = None) -> Forgotten:
    """What `forget_person` would erase now, as it would count it."""
    return Forgotten(
        said=_counted(_private(person_ref, npc_ref)),
        memories=count_about(person_ref, npc_ref=npc_ref),
        calls=model_calls.count_of_player(person_ref, npc_ref=npc_ref),
        persona=npc_ref is None and has_persona(person_ref),
        unlearnt=len(model_requests.unobserved(person_ref, npc_ref=npc_ref)),
    )


def has_persona(person_ref: str) -> bool:
    """True if `erase_persona` would erase something now."""
    is_written = personas.persona_of(person_ref) is not None
    return is_written or bool(_shown_persona(person_ref))


def erase_persona(person_ref: str, *, by: Actor) -> bool:
    """Erase what a person wrote of themselves, in every prompt that showed it too.

    Whether there was any of it. What the turns were made from loses it as well.
    """
    shown = _shown_persona(person_ref)
    for conversation in shown:
        seals = _take_block_out(conversation, persona_key(person_ref), source="persona")
        texts = [holding([persona_origin(person_ref)])]
        erase_texts(conversation, texts, of=OF_PERSONA, by=by, seals=seals)
    return personas.erase_persona_text(person_ref, by=by) or bool(shown)


def _shown_persona(person_ref: str) -> list[ConversationRef]:
    """The conversations with prompts that show what a person wrote of themselves."""
    return conversations_showing(holding([persona_origin(person_ref)]))


def _take_block_out(conversation: ConversationRef, key: str, *, source: str) -> dict[str, str]:
    """Erase a block of facts, and a source of lore, from the manifests of a conversation's turns.

    Returns:
        New seals of the turns that have ended, by number.
    """
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    showing = rows.filter(manifest__contains=f'"{key}"')
    return _changed_turns(showing, partial(without_block, key=key, source=source))


def _is_of(field: str, person_ref: str) -> Q:
    """True if a field names a person, or a guise of theirs."""
    in_guise = Q(**{f"{field}__startswith": start_of_guises(person_ref)})
    return Q(**{field: person_ref}) | in_guise


def count_about(person_ref: str, *, npc_ref: str | None = None) -> int:
    """How many memories about a person have words, those that only revisions tell of included."""
    return len(_ids(_revisions(person_ref, npc_ref).exclude(value="")))


def people() -> tuple[str, ...]:
    """The references of all that something was ever remembered of."""
    rows = models.MemoryRevision.objects.exclude(about="").exclude(value="")
    refs = rows.order_by("about").values_list("about", flat=True).distinct()
    return tuple(dict.fromkeys(map(wearer_of, refs)))


def erase_about(person_ref: str, *, by: Actor, npc_ref: str | None = None) -> int:
    """Erase the memories about a person; how many there were, with those that were gone before."""
    revisions = _revisions(person_ref, npc_ref).exclude(value="")
    return _erase_memories(
        revisions,
        by=by,
        is_gone=lambda memory: wearer_of(memory.about) == person_ref,
        doing=f"erasing the memories of {person_ref}",
    )


def room_refs() -> tuple[str, ...]:
    """The references of all rooms that something was said in, also of those that are gone."""
    rows = models.Conversation.objects.filter(kind="room").order_by("place_ref")
    return tuple(rows.values_list("place_ref", flat=True).distinct())


def npcs_of_room(place_ref: str) -> tuple[str, ...]:
    """The references of the NPCs that heard what was said in a room and is not erased."""
    found = [one.npc_ref for one in _of_room(place_ref) if _wordy(one).exists()]
    return tuple(dict.fromkeys(found))


def erasable_room(place_ref: str) -> Forgotten:
    """What `forget_room` would erase now, as it would count it."""
    memories_there = _learnt_in(place_ref).count()
    return Forgotten(said=_counted(_of_room(place_ref)), memories=memories_there)


def forget_room(place_ref: str, *, by: Actor) -> Forgotten:
    """Erase what was said in a room, with every NPC that heard it, and what they learnt from it.

    What was whispered there stays, as does what builders wrote. HistoryConflictError, StoreError:
    nothing was erased.
    """
    doing = f"forgetting room {place_ref}"
    with one_change(doing, by=by):
        # The memories first: on SQLite a transaction that reads first may not get to write.
        count = _erase_learnt_in(place_ref, by=by, doing=doing)
        rooms = _of_room(place_ref)
        for where in {one.npc_ref: one for one in rooms}.values():
            _erase_told_elsewhere(where, by=by)
        return Forgotten(said=_erased(rooms, by=by, doing=doing), memories=count)


def _erase_told_elsewhere(room: ConversationRef, *, by: Actor) -> None:
    """Prompts of the NPC's other conversations that may have told what it heard in the room."""
    others = (one for one in conversations_of(room.npc_ref) if one.id != room.id)
    for other in _with_branches(others):
        seals = _take_block_out(other, _ELSEWHERE_KEY, source=_ELSEWHERE_KEY)
        erase_texts(other, [holding(_ELSEWHERE)], of=OF_ROOMS, by=by, seals=seals)


def _of_room(place_ref: str) -> list[ConversationRef]:
    rows = models.Conversation.objects.filter(kind="room", place_ref=place_ref).order_by("pk")
    own = [ref_of(row) for row in rows]
    return [one for one in own if branches.npc_of(one.npc_ref) == one.npc_ref]


def _learnt_in(place_ref: str) -> Any:
    """What NPCs themselves learnt there from what was said aloud."""
    return models.Memory.objects.filter(place_ref=place_ref, author=OF_NPC, learnt="aloud")


def _erase_learnt_in(place_ref: str, *, by: Actor, doing: str) -> int:
    ids = frozenset(_learnt_in(place_ref).values_list("pk", flat=True))
    revisions = models.MemoryRevision.objects.filter(memory_id__in=ids)
    return _erase_memories(revisions, by=by, is_gone=lambda memory: memory.id in ids, doing=doing)


def _erase_memories(
    revisions: Any, *, by: Actor, is_gone: Callable[[Memory], bool], doing: str
) -> int:
    """Erase the words of these revisions, and what of it is still remembered; how many memories."""
    with changing(MEMORIES, doing, by=by):
        ids, npc_refs = _ids(revisions), set(revisions.values_list("npc_ref", flat=True))
        for ref in sorted(npc_refs):
            _end(ref, is_gone, by=by)
            for conversation in _with_branches(conversations_of(ref)):
                erase_texts(conversation, _of_memories(ids), by=by)
        revisions.update(value="")
    return len(ids)


def _revisions(person_ref: str, npc_ref: str | None) -> Any:
    """The changes of all that is about a person, which must be one: the world has no such right."""
    rows = models.MemoryRevision.objects.filter(_is_of("about", person_ref)).exclude(about="")
    return rows if npc_ref is None else rows.filter(npc_ref=npc_ref)


def _ids(rows: Any) -> frozenset[int]:
    return frozenset(rows.values_list("memory_id", flat=True))


def _end(npc_ref: str, is_gone: Callable[[Memory], bool], *, by: Actor) -> None:
    """Take memories out of the table; that they were there, and who erased them, stays."""
    gone = [memory for memory in memories.held_by(npc_ref).memories if is_gone(memory)]
    models.Memory.objects.filter(pk__in=[memory.id for memory in gone]).delete()
    ended = [replace(memory, revision=memory.revision + 1) for memory in gone]
    record_all(npc_ref, ended, action="erased", by=by)
    memories.written_past(npc_ref)


def _of_memories(ids: Collection[int]) -> list[Q]:
    """What finds the prompts' texts that showed one of these memories, some at once."""
    listed = sorted(ids)
    starts = range(0, len(listed), _MEMORIES_AT_ONCE)
    return [
        holding(f"memory:{one}" for one in listed[start : start + _MEMORIES_AT_ONCE])
        for start in starts
    ]
