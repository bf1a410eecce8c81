"""Meanings: pages of the game's database found by what they mean as well as by their words.

A model reads the parts of pages in a thread, some at a time, after the first search of a base and
after pages were changed; until it has read a page, that page is found by its words. What both ways
find is brought into one order by rank fusion. Off unless EVENNIA_AI_KNOWLEDGE_EMBEDDINGS is on.
"""

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from evennia_ai.knowledge.backends import Hit, PageDraft
from evennia_ai.knowledge.pages.page import Namespace, Page, PageName
from evennia_ai.knowledge.relevance import chunks, fused
from evennia_ai.llm.sentence_model import SentenceModel, SentenceModelError, sentence_model
from evennia_ai.store.knowledge import page_search, page_vectors
from evennia_ai.store.knowledge.backend import DatabaseBackend, as_backend_errors
from evennia_ai.store.knowledge.page_search import Found
from evennia_ai.store.knowledge.page_vectors import Near

log: Final = logging.getLogger(__name__)

MERGED: Final = 50
"""Pages that each of the two ways may bring."""

READ_AT_ONCE: Final = 8

InThread = Callable[..., "Deferred[Any]"]


class MeaningBackend:
    """The knowledge base `key` in the game's database, searched by words and by meaning."""

    def __init__(
        self,
        key: str,
        *,
        in_thread: InThread = deferToThread,
        model: Callable[[], SentenceModel] = sentence_model,
    ) -> None:
        self.key = key
        self._words = DatabaseBackend(key)
        self._in_thread = in_thread
        self._model = model
        self._is_reading = False

    def fetch(self, names: Sequence[PageName]) -> Sequence[Page | None]:
        """The pages of these names; aliases and one redirect are followed."""
        return self._words.fetch(names)

    def listed(self, namespace: Namespace, *, prefix: str = "") -> Sequence[PageName]:
        """The pages of a namespace whose titles begin so, in the order of their titles."""
        return self._words.listed(namespace, prefix=prefix)

    def linking(self, names: Sequence[PageName]) -> Sequence[Sequence[PageName]]:
        """For each of these pages the pages it links to."""
        return self._words.linking(names)

    def pages(self, *, most_characters: int) -> Sequence[Page] | None:
        """All pages, None where together they have more characters than that."""
        return self._words.pages(most_characters=most_characters)

    def write(self, draft: PageDraft) -> Page:
        """Write a page that was approved."""
        return self._words.write(draft)

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> "Deferred[Sequence[Hit]]":
        """The pages that fit the words of `query` or what it means, best first; comes later."""
        return Deferred.fromCoroutine(self._searched(query, namespaces, limit))

    async def _searched(
        self, query: str, namespaces: Collection[Namespace], limit: int
    ) -> Sequence[Hit]:
        try:
            model, vectors = await self._in_thread(self._asked, (query,))
        except SentenceModelError as error:
            log.warning("knowledge base %s is searched by words alone: %s", self.key, error)
            return self._words.search(query, namespaces=namespaces, limit=limit)
        with as_backend_errors():
            found = page_search.found(
                self.key, query, namespaces=namespaces, limit=max(limit, MERGED)
            )
            near = page_vectors.nearest(
                self.key, model, vectors[0], namespaces=namespaces, most=MERGED
            )
            hits = self._hits(found, near, limit=limit)
        self._read_on(model)
        return hits

    def _asked(self, texts: Sequence[str]) -> tuple[str, list[bytes]]:
        """The id of the model and its vectors of some texts; runs in a thread."""
        model = self._model()
        return model.id, model.vectors(texts)

    def _hits(self, found: Found, near: Sequence[Near], *, limit: int) -> tuple[Hit, ...]:
        by_words = [name for name, _ in found.names]
        merged = fused(by_words, [one.name for one in near])[:limit]
        places = {one.name: one.place for one in near if one.name not in by_words}
        hits = self._words.hits(Found(names=tuple(merged), rarities=found.rarities))
        return tuple(_with_part(hit, places.get(hit.page.name)) for hit in hits)

    def _read_on(self, model: str) -> None:
        """Have the model read what it has not read yet, unless it is at it."""
        if not self._is_reading:
            self._is_reading = True
            Deferred.fromCoroutine(self._read_all(model)).addErrback(self._stopped).addBoth(
                self._done
            )

    async def _read_all(self, model: str) -> None:
        while pages := page_vectors.unread(self.key, model, most=READ_AT_ONCE):
            for page in pages:
                _, vectors = await self._in_thread(self._asked, page.parts)
                page_vectors.keep(page, model, vectors)

    def _stopped(self, failure: Any) -> None:
        log.error("the pages of knowledge base %s were not all read: %s", self.key, failure.value)

    def _done(self, _: object) -> None:
        self._is_reading = False


def _with_part(hit: Hit, place: int | None) -> Hit:
    """A hit of which the nearest part is shown, where no word tells which."""
    parts = chunks(hit.page.body) if place is not None else ()
    return replace(hit, passage=parts[place]) if place is not None and place < len(parts) else hit
