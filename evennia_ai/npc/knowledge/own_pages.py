"""Own pages: searches pages in the game's database, by words and by meaning.

A search never blocks the game. It runs in a thread with a read-only connection, and must end within
`LIMIT_SECONDS`, including the wait for a thread. After that the caller gets an error, as for an
unreachable wiki.

With EVENNIA_AI_KNOWLEDGE_EMBEDDINGS, pages are also found by meaning. A sentence model reads them,
a few at a time (`embedding.py`), after the first search of a base and after changes. Pages that it
has not read yet are found only by words. If the model is too slow for a search, that search uses
only words. Hits are sorted by a weighted sum of both scores.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.engine.knowledge.pages.page import BackendError, Hit, Namespace
from evennia_ai.engine.knowledge.relevance import merge_rankings, split_chunks
from evennia_ai.npc.knowledge.embedding import Working, jobs_for
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.llm.sentence_model import SentenceModelError, Sentences
from evennia_ai.store.core.reading import read_limited
from evennia_ai.store.knowledge import backend, page_search
from evennia_ai.store.knowledge.backend import DatabaseBackend
from evennia_ai.store.knowledge.page_vectors import Near, nearest_pages

LIMIT_SECONDS: Final = 0.25
"""The time limit of a search."""

T = TypeVar("T")
InThread = Callable[..., "Deferred[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """Runs searches in threads, with a clock for their time limit."""

    run: InThread
    """Calls a function with its arguments in a thread. Without a server, calls it at once."""
    clock: Clock

    def within(self, what: str, work: Callable[[], T]) -> "Deferred[T]":
        """Call `work` in a thread.

        Return a Deferred with its result, which fails after the time limit.

        Raises:
            BackendError: The time limit is over. The message begins with `what`, and a late result
                is dropped.
        """
        told: Deferred[T] = self.run(work)

        def late(*_: object) -> T:
            raise BackendError(
                f"{what} took longer than {1000 * LIMIT_SECONDS:g} ms and was given up; ask again"
            )

        return told.addTimeout(LIMIT_SECONDS, self.clock, onTimeoutCancel=late)


class OwnBackend(DatabaseBackend):
    """A knowledge base in the game's database, searched by words."""

    def __init__(self, key: str, threads: Threads) -> None:
        super().__init__(key)
        self.threads = threads

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Deferred[tuple[Hit, ...]]":
        """Return a Deferred with the pages that match words of `query`, best first.

        Raises:
            BackendError: The time limit is over.
        """
        return self.threads.within(
            f"the search in knowledge base '{self.key}'",
            partial(_read, partial(super().search, query, namespaces=namespaces, limit=limit)),
        )


log: Final = logging.getLogger(__name__)

MERGED: Final = 50
"""The most pages that each of the two searches, by words and by meaning, contributes."""

_READING_SECONDS: Final = 60.0
"""The time limit for reading a base's vectors in a thread. No search waits that long."""


class MeaningBackend(OwnBackend):
    """A knowledge base in the game's database, searched by words and by meaning."""

    def __init__(
        self,
        key: str,
        threads: Threads,
        work: Working,
        *,
        model: Callable[[], Sentences],
    ) -> None:
        super().__init__(key, threads)
        self._work = work
        self._model = model
        self._is_reading = False

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Deferred[tuple[Hit, ...]]":
        """Return a Deferred with the pages that match `query` by words or meaning, best first."""
        return Deferred.fromCoroutine(self._search_both(query, namespaces, limit))

    async def _search_both(
        self, query: str, namespaces: Collection[Namespace], limit: int
    ) -> tuple[Hit, ...]:
        what = f"in knowledge base '{self.key}'"
        near_to = partial(self._nearest_to, query, namespaces)
        meant = self.threads.within(f"the search by meaning {what}", near_to)
        try:
            model, near = await meant
        except (SentenceModelError, BackendError) as error:
            log.warning("knowledge base %s is searched by words only: %s", self.key, error)
            return await super().search(query, namespaces=namespaces, limit=limit)
        by_both = partial(self._by_both, query, namespaces, limit, near)
        hits = await self.threads.within(f"the search {what}", partial(_read, by_both))
        self._embed_missing_pages(model)
        return hits

    def _nearest_to(self, query: str, namespaces: Collection[Namespace]) -> tuple[str, list[Near]]:
        """Return the id of the model, and the pages closest in meaning. Runs in a thread."""
        model, vectors = self._vectors_of((query,))
        look = partial(
            nearest_pages, self.key, model, vectors[0], namespaces=namespaces, most=MERGED
        )
        return model, _read(look, limit_seconds=_READING_SECONDS)

    def _vectors_of(self, texts: Sequence[str]) -> tuple[str, list[bytes]]:
        """Return the id of the model, and its vectors of these texts. Runs in a thread."""
        model = self._model()
        return model.id, model.vectors(texts)

    def _by_both(
        self, query: str, namespaces: Collection[Namespace], limit: int, near: Sequence[Near]
    ) -> tuple[Hit, ...]:
        found = page_search.search_pages(
            self.key, query, namespaces=namespaces, limit=max(limit, MERGED)
        )
        by_words = {name for name, _ in found.names}
        merged = merge_rankings(
            found.names,
            {one.name: one.similarity for one in near},
            reachable=sum(found.rarities.values()),
        )
        places = {one.name: one.place for one in near if one.name not in by_words}
        hits = self.hits(replace(found, names=tuple(merged[:limit])))
        return tuple(_with_part(hit, places.get(hit.page.name)) for hit in hits)

    def _embed_missing_pages(self, model: str) -> None:
        """Let the model read pages without vectors, unless it is doing that already."""
        if not self._is_reading:
            self._is_reading = True
            Deferred.fromCoroutine(self._read_all(model)).addErrback(self._stopped).addBoth(
                self._done
            )

    async def _read_all(self, model: str) -> None:
        look = partial(jobs_for, self.key, model, in_workers=self._work.in_workers)
        while jobs := await self.threads.run(partial(_read, look, limit_seconds=_READING_SECONDS)):
            for ended in [self._work.submit(job) for job in jobs]:
                ending, reason = await ended
                if ending != "applied":  # the next search tries again
                    self._not_read(reason)
                    return

    def _stopped(self, failure: Any) -> None:
        self._not_read(failure.value)

    def _not_read(self, why: object) -> None:
        log.error("the model did not read all pages of knowledge base %s: %s", self.key, why)

    def _done(self, _: object) -> None:
        self._is_reading = False


def _read(work: Callable[[], T], *, limit_seconds: float = LIMIT_SECONDS) -> T:
    """Call `work` with a read-only connection of this thread.

    Raises:
        BackendError: `work` takes too long, or the database cannot be read.
    """
    with backend.as_backend_errors():
        return read_limited(work, limit_seconds=limit_seconds)


def _with_part(hit: Hit, place: int | None) -> Hit:
    """Return a hit. If it was found by meaning, its passage is the closest part of the page."""
    parts = split_chunks(hit.page.body) if place is not None else ()
    return replace(hit, passage=parts[place]) if place is not None and place < len(parts) else hit
