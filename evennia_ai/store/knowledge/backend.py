"""The game's own database as a place of pages: the `Backend` that a base has unless it says else.

Every answer is there at once; a running game has searches run in threads. What goes wrong is told
as a `BackendError`, as by any other backend.
The hint of a restricted base is told without what its own pages say: those that have the most of
its words are asked for, however large the base is; the one it was copied from is among them.
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
from evennia_ai.store.knowledge.knowledge_bases import base
from evennia_ai.store.knowledge.page_search import Found

MOST_PAGES: Final = 20


class DatabaseBackend:
    """The knowledge base `key`, whose pages are in the game's database."""

    def __init__(self, key: str) -> None:
        self.key = key

    def fetch(self, names: Sequence[PageName]) -> tuple[Page | None, ...]:
        """The pages of these names; aliases and one redirect are followed."""
        with as_backend_errors():
            return pages.pages_named(self.key, names)

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> tuple[Hit, ...]:
        """The pages that fit the words of `query`, best first."""
        with as_backend_errors():
            found = page_search.found(self.key, query, namespaces=namespaces, limit=limit)
            return self.hits(found)

    def listed(self, namespace: Namespace, *, prefix: str = "") -> tuple[PageName, ...]:
        """The pages of a namespace whose titles begin so, in the order of their titles."""
        with as_backend_errors():
            return pages.listed(self.key, namespace, prefix=prefix)

    def linking(self, names: Sequence[PageName]) -> tuple[tuple[PageName, ...], ...]:
        """For each of these pages the pages it links to."""
        with as_backend_errors():
            return pages.linking(self.key, names)

    def pages(self, *, most_characters: int) -> tuple[Page, ...] | None:
        """All pages, None where together they have more characters than that."""
        with as_backend_errors():
            return pages.all_pages(self.key, most_characters=most_characters)

    def write(self, draft: PageDraft) -> Page:
        """Write a page that was approved; BackendError also where somebody else changed it."""
        with as_backend_errors():
            return pages.save_page(self.key, draft)

    def hits(self, found: Found) -> tuple[Hit, ...]:
        """What was found as pages, each once, though a redirect to it was found as well."""
        rows = pages.pages_named(self.key, [name for name, _ in found.names])
        hits: dict[PageName, Hit] = {}
        for page, (_, score) in zip(rows, found.names, strict=True):
            if page is not None and page.name not in hits:
                part = best_chunk(page.body, found.rarities, found.languages)
                hits[page.name] = Hit(page=page, passage=part, score=score)
        return tuple(hits.values())


@contextmanager
def as_backend_errors() -> Iterator[None]:
    """What the store refuses, as what a backend refuses."""
    try:
        yield
    except BackendError:
        raise
    except EvenniaAIError as error:
        raise BackendError(str(error)) from error


def _load(key: str) -> str:
    info = base(key)
    if info is None or not info.hint:
        return ""
    if info.backend != "database":  # a page elsewhere is not there at once
        return safe_hint(info.hint)
    return _compared(info)


def _compared(info: BaseInfo) -> str:
    """The hint beside the pages; where they cannot be read there is none."""
    try:
        hits = DatabaseBackend(info.key).search(info.hint, limit=MOST_PAGES)
    except EvenniaAIError:
        return ""
    pages = [hit.page for hit in hits]
    titles = {name for page in pages for name in (page.name.title, *page.meta.aliases)}
    return safe_hint(info.hint, titles=titles, texts=[page.body for page in pages])


safe_hint_of: Final = Snapshots(KNOWLEDGE, _load)
"""The hint of a base without what its pages say; "" for none. Warm, without a query."""
