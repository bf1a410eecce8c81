"""The default `Backend`, for knowledge bases whose pages are in the game's own database.

No network is needed; a running game runs searches in threads. Errors are raised as `BackendError`,
as in other backends.

Words that would reveal pages of a restricted base are removed from its hint. To find such words,
the hint is compared with the pages that share most words with it. If the hint was copied from a
page, that page is among them, however large the base is.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.meta_prompt import safe_hint
from evennia_ai.engine.knowledge.pages.page import (
    BackendError,
    BaseInfo,
    Hit,
    Namespace,
    Page,
    PageDraft,
    PageName,
)
from evennia_ai.engine.knowledge.relevance import best_chunk
from evennia_ai.store.core.snapshots import KNOWLEDGE, Snapshots
from evennia_ai.store.knowledge import page_search, pages
from evennia_ai.store.knowledge.knowledge_bases import base_or_none
from evennia_ai.store.knowledge.page_search import Found

MOST_PAGES: Final = 20


class DatabaseBackend:
    """A knowledge base with pages in the game's database."""

    def __init__(self, key: str) -> None:
        self.key = key

    def fetch(self, names: Sequence[PageName]) -> tuple[Page | None, ...]:
        """Return the pages with these names. Aliases work too, and one redirect is followed."""
        with as_backend_errors():
            return pages.pages_named(self.key, names)

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> tuple[Hit, ...]:
        """Return the pages that match the words of a query, best first."""
        with as_backend_errors():
            found = page_search.search_pages(self.key, query, namespaces=namespaces, limit=limit)
            return self.hits(found)

    def listed(self, namespace: Namespace, *, prefix: str = "") -> tuple[PageName, ...]:
        """Return the names of pages in a namespace whose titles have a prefix, sorted by title."""
        with as_backend_errors():
            return pages.list_pages(self.key, namespace, prefix=prefix)

    def linking(self, names: Sequence[PageName]) -> tuple[tuple[PageName, ...], ...]:
        """Return, for each of these pages, the names of the pages that it links to."""
        with as_backend_errors():
            return pages.linked_pages(self.key, names)

    def pages(self, *, most_characters: int) -> tuple[Page, ...] | None:
        """Return all pages, or None if they have more than `most_characters` together."""
        with as_backend_errors():
            return pages.all_pages(self.key, most_characters=most_characters)

    def write(self, draft: PageDraft) -> Page:
        """Write an approved page.

        Raises:
            BackendError: the page could not be written, for example because another person changed
                it.
        """
        with as_backend_errors():
            return pages.save_page(self.key, draft)

    def hits(self, found: Found) -> tuple[Hit, ...]:
        """Return the pages of a search result, each once. Redirects are followed."""
        rows = pages.pages_named(self.key, [name for name, _ in found.names])
        hits: dict[PageName, Hit] = {}
        for page, (_, score) in zip(rows, found.names, strict=True):
            if page is not None and page.name not in hits:
                part = best_chunk(page.body, found.rarities, found.languages)
                hits[page.name] = Hit(page=page, passage=part, score=score)
        return tuple(hits.values())


@contextmanager
def as_backend_errors() -> Iterator[None]:
    """Turn errors of the store inside a `with` block into `BackendError`."""
    try:
        yield
    except BackendError:
        raise
    except EvenniaAIError as error:
        raise BackendError(str(error)) from error


def _load(key: str) -> str:
    info = base_or_none(key)
    if info is None or not info.hint:
        return ""
    # Pages of other backends are not compared, because reading them takes time.
    if info.backend != "database":
        return safe_hint(info.hint)
    return _compared(info)


def _compared(info: BaseInfo) -> str:
    """Return the hint of a knowledge base without words that reveal its pages.

    Return "" if the pages cannot be read.
    """
    try:
        hits = DatabaseBackend(info.key).search(info.hint, limit=MOST_PAGES)
    except EvenniaAIError:
        return ""
    pages = [hit.page for hit in hits]
    titles = {name for page in pages for name in (page.name.title, *page.meta.aliases)}
    return safe_hint(info.hint, titles=titles, texts=[page.body for page in pages])


safe_hint_of: Final = Snapshots(KNOWLEDGE, _load)
"""Return the hint of a base without words that reveal its pages; "" for none.

No query is made if the value is in memory.
"""
