"""The game's own database as a place of pages: the `Backend` that a base has unless it says else.

Every answer is there at once. What goes wrong is told as a `BackendError`, as by any other backend.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.backends import BackendError, Hit, PageDraft
from evennia_ai.knowledge.pages.pages import Namespace, Page, PageName
from evennia_ai.knowledge.passages import passage
from evennia_ai.store import page_search, pages
from evennia_ai.store.page_search import Found


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
                part = passage(page.body, found.rarities)
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
