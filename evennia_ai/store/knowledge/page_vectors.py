"""Vectors of pages: what a model made of their parts, so that pages are found by what they mean.

A vector belongs to the text it was made from: a page that says something else by now is read again,
and is found by its words meanwhile. The model itself is asked elsewhere, in a thread or by workers.
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
    return tuple(f"{title}\n{part}" for part in split_chunks(body)) or (title,)


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
