"""Erasing: the words of a conversation go, that something was said stays.

Names, bodies and meta of the records, the lore's memory and what the turns were made from are
gone for good; hashes, times and numbers stay, so the chain still holds and nobody can slip in what
was never said. An erasure is a record itself, first of a new segment: an NPC remembers nothing of
what was before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import time

from django.db.models import Q

from evennia_ai import models
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.history.turn.manifest import TurnManifest, without_words
from evennia_ai.models import ERASED_META
from evennia_ai.store import conversations, errands, knowledge_searches, lore_state, texts
from evennia_ai.store.conversations import ConversationRef, ref_of
from evennia_ai.store.segments import refuse_what_came_between
from evennia_ai.store.state import changing
from evennia_ai.store.windows import HISTORY, windows

_CHUNK = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """How many conversations were erased, and how many records and turns of them."""

    conversations: int = 0
    records: int = 0
    turns: int = 0


def erase_private(partner_ref: str, *, by: str, npc_ref: str | None = None) -> Erased:
    """Erase all private conversations of one player with one NPC or with any, all or none.

    What the player said aloud in a room belongs to the room and stays. HistoryConflictError:
    another process wrote to one of them at the same moment; nothing was erased.
    """
    found = _private(partner_ref, npc_ref)
    return _erased(found, by=by, doing=f"erasing the private conversations of {partner_ref}")


def erasable_private(partner_ref: str, *, npc_ref: str | None = None) -> Erased:
    """What `erase_private` would erase now, as it would count it."""
    done = Erased()
    for conversation in _private(partner_ref, npc_ref):
        if records := _wordy(conversation).count():
            turns = models.Turn.objects.filter(conversation_id=conversation.id).count()
            done = _with(done, records=records, turns=turns)
    return done


def private_partners() -> tuple[str, ...]:
    """The references of all who ever had a private conversation, also of those who are gone."""
    rows = models.Conversation.objects.filter(kind="private").order_by("partner_ref")
    return tuple(rows.values_list("partner_ref", flat=True).distinct())


def erase_conversation(conversation: ConversationRef, *, by: str) -> Erased:
    """Erase one conversation; `by` is who asked for it, and is recorded."""
    return _erased([conversation], by=by, doing=f"erasing {conversation}")


def _erased(found: Sequence[ConversationRef], *, by: str, doing: str) -> Erased:
    # Read before the transaction: on SQLite one that reads first may not get to write.
    known = [(conversation, windows.read(conversation.id).end) for conversation in found]
    done = Erased()
    with changing(HISTORY, doing):
        for conversation, end in known:
            records = _wordy(conversation).erase()
            if not records:
                continue
            turns = _forget_turns(conversation)
            errands.erase(conversation.id)
            knowledge_searches.erase(conversation.id)
            lore_state.reset(conversation, by=by)
            note = NewRecord(
                kind=RecordKind.ERASURE,
                role="system",
                meta={"by": by, "records": records, "turns": turns},
            )
            conversations.written(conversation, end.next_segment(), [note])
            windows.written(conversation.id)
            refuse_what_came_between(conversation, end)
            texts.forget(conversation)
            done = _with(done, records=records, turns=turns)
    return done


def _private(partner_ref: str, npc_ref: str | None) -> list[ConversationRef]:
    rows = models.Conversation.objects.filter(kind="private", partner_ref=partner_ref)
    if npc_ref is not None:
        rows = rows.filter(npc_ref=npc_ref)
    return [ref_of(row) for row in rows.order_by("pk")]


def _with(done: Erased, *, records: int, turns: int) -> Erased:
    """`done` with one more conversation of so many records and turns."""
    return Erased(
        conversations=done.conversations + 1,
        records=done.records + records,
        turns=done.turns + turns,
    )


def _wordy(conversation: ConversationRef) -> models.AppendOnlyQuerySet:
    """The records that have words; those that tell of an erasure keep them.

    Neither a kind nor a meta excuses a name or a body: an imported record may have any of them.
    """
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    wordless = Q(kind=RecordKind.ERASURE.value) | Q(meta=ERASED_META)
    return rows.exclude(wordless & Q(name="", body=""))


def _forget_turns(conversation: ConversationRef) -> int:
    """Take the words out of the turns; one that is under way is ended, its reply comes too late."""
    rows = models.Turn.objects.filter(conversation_id=conversation.id)
    rows.filter(state="open").update(state="failed", ended_at=time())
    count = 0
    for row in rows.order_by("pk").iterator(chunk_size=_CHUNK):
        bare = without_words(TurnManifest.from_json(row.manifest))
        rows.filter(pk=row.pk).update(manifest=bare.to_json(), outcome="erased on request")
        count += 1
    return count
