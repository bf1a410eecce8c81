"""The game's own database as a place of pages: the `Backend` that a base has unless it says else.

Every answer is there at once; a running game has searches run in threads. What goes wrong is told
as a `BackendError`, as by any other backend.
The hint of a restricted base is told without what its own pages say: those that have the most of
its words are asked for, however large the base is; the one it was copied from is among them.

Pages are found by their meaning, too, where a model made vectors of their parts. A vector belongs
to the text it was made from: a page that says something else by now is read again, and is found by
its words meanwhile. The model itself is asked elsewhere, in a thread.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef

from evennia_ai import models
from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.meta_prompt import safe_hint
from evennia_ai.knowledge.pages.page import (
    NAMESPACES,
    BackendError,
    BaseInfo,
    Hit,
    Namespace,
    Page,
    PageDraft,
    PageName,
)
from evennia_ai.knowledge.relevance import chunks, passage
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
                part = passage(page.body, found.rarities, found.languages)
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


LEAST_SIMILAR: Final = 0.3
"""How near a part must lie to what is asked: below it the two have mostly nothing in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A page of which there are no vectors yet, and its parts as the model is to read them."""

    page_id: int
    sha256: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A page whose meaning is near, and the place of its nearest part."""

    name: PageName
    place: int
    similarity: float
    """The cosine of that part's vector and of what is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """All vectors of a base in one matrix, with the page and the place of each row."""

    newest: int
    count: int
    matrix: Any
    parts: tuple[tuple[PageName, int], ...]


_kept: dict[tuple[str, str], _Kept] = {}
# One thread reads them for all: they are large.
_reading: Final = Lock()


def unread(base: str, model: str, *, most: int) -> tuple[Unread, ...]:
    """Some pages of a base that the model has not read as they are now."""
    read = models.KnowledgePageVector.objects.filter(
        page=OuterRef("pk"), model=model, sha256=OuterRef("sha256")
    )
    rows = models.KnowledgePage.objects.filter(~Exists(read), base__key=base).order_by("pk")[:most]
    return tuple(
        Unread(page_id=row.pk, sha256=row.sha256, parts=_parts(row.title, row.body)) for row in rows
    )


def as_they_were(pages: Iterable[tuple[int, str]]) -> tuple[Unread, ...]:
    """Those of the pages, by number and hash, that say still what they said then."""
    hashes = dict(pages)
    rows = models.KnowledgePage.objects.filter(pk__in=hashes).order_by("pk")
    return tuple(
        Unread(page_id=row.pk, sha256=row.sha256, parts=_parts(row.title, row.body))
        for row in rows
        if row.sha256 == hashes[row.pk]
    )


def newest_vector() -> int:
    """The number of the vector that was kept last, 0 before the first."""
    numbers = models.KnowledgePageVector.objects.order_by("-pk").values_list("pk", flat=True)
    return numbers.first() or 0


def keep(page_id: int, sha256: str, model: str, vectors: Sequence[bytes]) -> None:
    """Keep the vectors of a page's parts; nothing is kept where it was changed or removed."""
    with transaction.atomic():
        if not models.KnowledgePage.objects.filter(pk=page_id, sha256=sha256).exists():
            return
        models.KnowledgePageVector.objects.filter(page_id=page_id, model=model).delete()
        models.KnowledgePageVector.objects.bulk_create(
            models.KnowledgePageVector(
                page_id=page_id, place=place, model=model, sha256=sha256, vector=vector
            )
            for place, vector in enumerate(vectors)
        )


def nearest(
    base: str, model: str, asked: bytes, *, namespaces: Collection[Namespace] = (), most: int
) -> list[Near]:
    """The pages whose parts lie nearest to what is asked, the nearest first, each once."""
    import numpy as np

    with _reading:
        kept = _matrix(base, model)
    if not kept.parts:
        return []
    within = frozenset(namespaces or NAMESPACES)
    similar = kept.matrix @ np.frombuffer(asked, "<f4")
    found: dict[PageName, Near] = {}
    for row in np.argsort(-similar, kind="stable"):
        name, place = kept.parts[row]
        if similar[row] < LEAST_SIMILAR or len(found) == most:
            break
        if name.namespace in within:
            one = Near(name=name, place=place, similarity=float(similar[row]))
            found.setdefault(name, one)
    return list(found.values())


def _parts(title: str, body: str) -> tuple[str, ...]:
    """The parts of a page, each under its title, which says what they are about."""
    return tuple(f"{title}\n{part}" for part in chunks(body)) or (title,)


def _matrix(base: str, model: str) -> _Kept:
    """The vectors of a base, read again where there are others by now."""
    import numpy as np

    rows = models.KnowledgePageVector.objects.filter(page__base__key=base, model=model)
    numbers = rows.order_by("-pk").values_list("pk", flat=True)
    newest, count = numbers.first() or 0, numbers.count()
    kept = _kept.get((base, model))
    if kept is None or (kept.newest, kept.count) != (newest, count):
        columns = ("page__namespace", "page__title", "place", "vector")
        found = list(rows.order_by("page__title", "page__namespace", "place").values_list(*columns))
        kept = _kept[base, model] = _Kept(
            newest=newest,
            count=count,
            matrix=np.array([np.frombuffer(bytes(row[3]), "<f4") for row in found]),
            parts=tuple((PageName(namespace=row[0], title=row[1]), row[2]) for row in found),
        )
    return kept
