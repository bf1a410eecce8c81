"""Store vectors of pages, by which pages are found by their meaning.

A vector belongs to the text that it was made from. A changed page gets new vectors, and is found by
its words until then. Other modules call the model, in a thread or in workers.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, OuterRef

from evennia_ai import models
from evennia_ai.engine.knowledge.pages.page import NAMESPACES, Namespace, PageName
from evennia_ai.engine.knowledge.relevance import split_chunks

LEAST_SIMILAR: Final = 0.3
"""The lowest similarity (cosine) of a hit.

Below it, page and query mostly have nothing in common.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A page whose vectors are missing or out of date, with the texts to give the model."""

    page_id: int
    sha256: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """A page that is similar to a query, with the index of its most similar part."""

    name: PageName
    place: int
    similarity: float
    """The cosine of the angle between the vectors of that part and of the query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """All vectors of a knowledge base as one matrix, with the page and the part of each row."""

    newest: int
    count: int
    matrix: Any
    parts: tuple[tuple[PageName, int], ...]


_kept: dict[tuple[str, str], _Kept] = {}
# Only one thread at a time may load a matrix, because it is large.
_reading: Final = Lock()


def pages_without_vectors(base: str, model: str, *, most: int) -> tuple[Unread, ...]:
    """Return up to `most` pages of a knowledge base that have no current vectors of this model."""
    read = models.KnowledgePageVector.objects.filter(
        page=OuterRef("pk"), model=model, sha256=OuterRef("sha256")
    )
    rows = models.KnowledgePage.objects.filter(~Exists(read), base__key=base).order_by("pk")[:most]
    return tuple(
        Unread(page_id=row.pk, sha256=row.sha256, parts=_parts(row.title, row.body)) for row in rows
    )


def unchanged_pages(pages: Iterable[tuple[int, str]]) -> tuple[Unread, ...]:
    """Return those of the pages, given by id and hash, that were not changed since."""
    hashes = dict(pages)
    rows = models.KnowledgePage.objects.filter(pk__in=hashes).order_by("pk")
    return tuple(
        Unread(page_id=row.pk, sha256=row.sha256, parts=_parts(row.title, row.body))
        for row in rows
        if row.sha256 == hashes[row.pk]
    )


def newest_vector() -> int:
    """Return the id of the newest vector, or 0 if there is none."""
    numbers = models.KnowledgePageVector.objects.order_by("-pk").values_list("pk", flat=True)
    return numbers.first() or 0


def keep_vectors(page_id: int, sha256: str, model: str, vectors: Sequence[bytes]) -> None:
    """Store the vectors of a page's parts, unless the page was changed or removed."""
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


def nearest_pages(
    base: str, model: str, asked: bytes, *, namespaces: Collection[Namespace] = (), most: int
) -> list[Near]:
    """Return the pages with the most similar parts, most similar first, each once."""
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
    """Return the parts of a page. Each begins with the title, which says what the part is about."""
    return tuple(f"{title}\n{part}" for part in split_chunks(body)) or (title,)


def _matrix(base: str, model: str) -> _Kept:
    """Return the matrix of a knowledge base's vectors.

    It is loaded again if the table has changed.
    """
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
