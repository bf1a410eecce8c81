"""Store what NPCs searched for and what they found, and the vault.

A search in a restricted base stores only hashes of the passages, and names such as "Source 1". If
the base keeps passages, they are in the vault. The lock of the base decides who may read them, and
every reading is recorded.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage, summary_words
from evennia_ai.store.core.snapshots import one_change, one_transaction, value_of
from evennia_ai.store.history.record_rows import ConversationRef, ref_of
from evennia_ai.store.knowledge.knowledge_bases import base_row, refuse_locked

NEWEST: Final = 20

MOST_REMEMBERED: Final = 24
"""The most earlier safe summaries with which a new one is compared."""

MOST_REMEMBERED_CHARACTERS: Final = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSearch:
    """A search before it is stored."""

    conversation: ConversationRef
    turn: int
    speaker_ref: str
    bases: tuple[str, ...]
    query: str
    restricted: bool
    mode: str
    total: int
    """The number of passages that the search found."""
    sent: int
    """The number of passages that were used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSearch(NewSearch):
    """A stored search."""

    id: int
    npc_ref: str
    decision: str
    reason: str
    sources: tuple[dict[str, Any], ...]
    result: str
    began_at: float
    ended_at: float | None
    """The time of the result; None while there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChunk:
    """A passage in the vault, with its page and its search."""

    search: int
    base: str
    title: str
    revision: str
    sha256: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A record that somebody read the vault of a knowledge base."""

    by: str
    at: float
    chunks: int


def begin_search(
    new: NewSearch, chunks: Sequence[PagePassage], *, vaulted: Sequence[PagePassage] = ()
) -> int:
    """Store a search with the passages that are used, before its result is known.

    Return its number.

    Args:
        vaulted: The passages that go into the vault.

    Raises:
        StoreError: nothing was written.
    """
    with one_transaction(f"storing a search of NPC {new.conversation.npc_ref}"):
        row = models.KnowledgeSearch.objects.create(
            npc_ref=new.conversation.npc_ref,
            conversation_id=new.conversation.id,
            turn=new.turn,
            speaker_ref=new.speaker_ref,
            bases=json.dumps(new.bases),
            query=make_storable(new.query),
            restricted=new.restricted,
            mode=new.mode,
            total=new.total,
            sent=new.sent,
            sources=json.dumps(_sources(chunks, restricted=new.restricted)),
            began_at=time.time(),
        )
        models.VaultedChunk.objects.bulk_create(
            models.VaultedChunk(
                search=row,
                base_key=chunk.base,
                place=place,
                title=make_storable(chunk.title),
                page_revision=chunk.revision,
                sha256=chunk.sha256,
                content=make_storable(chunk.content),
            )
            for place, chunk in enumerate(vaulted, start=1)
        )
    number: int = row.pk
    return number


def end_search(search: int, result: str, *, decision: str = "", reason: str = "") -> None:
    """Store the result that the NPC got from a search.

    Raises:
        StoreError: nothing was written.
    """
    with one_transaction(f"storing the result of search {search}"):
        models.KnowledgeSearch.objects.filter(pk=search, ended_at=None).update(
            result=make_storable(result), decision=decision, reason=reason, ended_at=time.time()
        )


def count_since(conversation: ConversationRef, speaker_ref: str, *, since: float) -> int:
    """Return how many searches a speaker caused in a conversation since a time."""
    rows = models.KnowledgeSearch.objects.filter(
        conversation_id=conversation.id, speaker_ref=speaker_ref, began_at__gt=since
    )
    return int(rows.count())


def safe_summaries(conversation: ConversationRef) -> str:
    """Return the newest safe summaries of a conversation as one text, oldest first."""
    rows = models.KnowledgeSearch.objects.filter(
        conversation_id=conversation.id, restricted=True, decision="answer"
    )
    results = rows.order_by("-pk").values_list("result", flat=True)[:MOST_REMEMBERED]
    told = [summary_words(result) for result in reversed(results)]
    return "\n".join(told)[-MOST_REMEMBERED_CHARACTERS:]


def bases_of(npc_ref: str) -> frozenset[str]:
    """Return the keys of all knowledge bases that an NPC has ever searched."""
    rows = models.KnowledgeSearch.objects.filter(npc_ref=npc_ref).order_by()
    return frozenset(
        key for told in rows.values_list("bases", flat=True).distinct() for key in json.loads(told)
    )


def searches_of(npc_ref: str) -> tuple[StoredSearch, ...]:
    """Return all searches of an NPC, oldest first."""
    return tuple(map(_search_from, _rows().filter(npc_ref=npc_ref).order_by("pk")))


def searches_of_turns(npc_ref: str, first: int, last: int) -> tuple[StoredSearch, ...]:
    """Return the searches that an NPC made in turns `first` to `last`, oldest first."""
    rows = _rows().filter(npc_ref=npc_ref, turn__gte=first, turn__lte=last).order_by("pk")
    return tuple(map(_search_from, rows))


def open_vault(base: str, *, by: Actor, limit: int = NEWEST) -> tuple[KeptChunk, ...]:
    """Return the newest passages in the vault of a knowledge base, and record that `by` read them.

    Raises:
        StoreError: the reading could not be recorded, so nothing is returned.
        NotStoredError: there is no such base, or `by` must not know that it exists.
    """
    with one_change(f"opening the vault of {base}", by=by):
        rows = models.VaultedChunk.objects.filter(base_key=base)
        found = [_chunk_from(row) for row in rows.order_by("-search_id", "place")[:limit]]
        models.VaultReading.objects.create(
            base_key=base, read_by=by.name, read_at=time.time(), chunks=len(found)
        )
        if not by.sees(base_row(base).locks):
            raise NotStoredError("knowledge base", base)
    return tuple(found)


def vault_readings(base: str) -> tuple[Reading, ...]:
    """Return who read the vault of a knowledge base, newest first."""
    rows = models.VaultReading.objects.filter(base_key=base).order_by("-pk")
    return tuple(Reading(by=row.read_by, at=row.read_at, chunks=row.chunks) for row in rows)


def empty_vault(base: str, *, by: Actor) -> int:
    """Delete the passages in the vault of a knowledge base, and return how many there were."""
    with one_change(f"emptying the vault of {base}", by=by):
        rows = models.VaultedChunk.objects.filter(base_key=base)
        count = rows.count()
        rows.delete()
        refuse_locked(base_row(base), f"emptying the vault of {base}", by=by)
    return int(count)


def erase_searches(conversation_id: int) -> int:
    """Erase the contents of a conversation's searches, and return how many there are.

    Call it inside a transaction.
    """
    return _erased(models.KnowledgeSearch.objects.filter(conversation_id=conversation_id))


def erase_searches_by(speaker_ref: str, *, npc_ref: str | None = None) -> int:
    """Erase a person's searches and the person's name on them, and return their number.

    Call this inside a transaction.
    """
    if not speaker_ref:
        return 0
    rows = models.KnowledgeSearch.objects.filter(speaker_ref=speaker_ref)
    return _erased(rows if npc_ref is None else rows.filter(npc_ref=npc_ref))


def _erased(rows: Any) -> int:
    models.VaultedChunk.objects.filter(search__in=rows.values("pk")).delete()
    erased: int = rows.update(speaker_ref="", query="", result="", sources="[]")
    return erased


def _sources(chunks: Sequence[PagePassage], *, restricted: bool) -> list[dict[str, Any]]:
    """Return the names of the pages that passages come from.

    The pages of a restricted knowledge base get numbers instead of names.
    """
    return [
        {
            "title": f"Source {place}" if restricted else chunk.title,
            "base": chunk.base,
            "revision": chunk.revision,
            "sha256": chunk.sha256,
        }
        for place, chunk in enumerate(chunks, start=1)
    ]


def _rows() -> Any:
    return models.KnowledgeSearch.objects.select_related("conversation")


def _search_from(row: models.KnowledgeSearch) -> StoredSearch:
    return value_of(
        StoredSearch,
        row,
        conversation=ref_of(row.conversation),
        bases=tuple(json.loads(row.bases)),
        sources=tuple(json.loads(row.sources)),
    )


def _chunk_from(row: models.VaultedChunk) -> KeptChunk:
    return value_of(
        KeptChunk, row, search=row.search_id, base=row.base_key, revision=row.page_revision
    )
