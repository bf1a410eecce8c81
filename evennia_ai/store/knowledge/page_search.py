"""Searching pages in the game's own database: which are looked at, and which of them are best.

The database finds pages by their words, those with all of them first, then those with one of the
rarest: to rank each page that has some common word would take long, and find no better one. What it
found is ranked here, by one measure, so SQLite and PostgreSQL answer alike. What a player writes
becomes words before it comes to any database, and never a query.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from django.db import DatabaseError, connection

from evennia_ai import models
from evennia_ai.errors import StoreError
from evennia_ai.knowledge.pages.page import Namespace, Page, PageName
from evennia_ai.knowledge.relevance import PageWords, asked_words, rarity, relevance, words_of_page
from evennia_ai.store.knowledge.page_databases import DATABASES, PageDatabase

RANKED: Final = 100
"""Pages that are ranked; more than any caller asks for."""

RAREST: Final = 3
"""So many of the rarest words bring pages that have not all words."""

TOO_COMMON: Final = 5_000
"""Pages that the rarest words may bring: a search takes as long as the database ranks them."""

SOON: Final = 0.1
"""By this share the number of pages must change before common words are counted again."""

_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search found."""

    names: tuple[tuple[PageName, float], ...] = ()
    """The pages with their scores, best first."""
    rarities: Mapping[str, float]
    """How much each word told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The words of a query that some page has."""

    rarities: Mapping[str, float]
    """How much each word tells, the rarest first."""
    rarest: tuple[str, ...]
    """Those that bring pages which have not all words, as many as are not too common."""


# Pages that have a common word, and how many pages there were then.
_common: Final[dict[str, tuple[int, int]]] = {}


def index(pages: Iterable[tuple[int, Page]]) -> None:
    """The current transaction wrote these pages, each with the id of its row: find them so."""
    rows = [_row(page_id, page) for page_id, page in pages]
    models.KnowledgePageWords.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["page"],
        update_fields=["title", "body"],
        batch_size=_BATCH,
    )


def found(
    base: str, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
) -> Found:
    """The pages of a base that fit the words of a query, best first; equal ones by their titles.

    StoreError: the database cannot be searched.
    """
    try:
        asked = _asked(asked_words(query))
        rows = _candidates(asked, base, namespaces, limit) if asked.rarities else set()
        ranked = _ranked(rows, asked.rarities)
    except DatabaseError as error:
        raise StoreError(f"the pages of '{base}' cannot be searched: {error}") from error
    return Found(names=tuple(ranked[:limit]), rarities=asked.rarities)


def _asked(words: Sequence[str]) -> _Asked:
    stored = sum(models.KnowledgeBase.objects.values_list("page_count", flat=True))
    counts = _counts(words, stored)
    pages = max([stored, *counts.values()])
    rarest_first = sorted(counts, key=lambda word: (counts[word], word))
    return _Asked(
        rarities={word: rarity(counts[word], pages=pages) for word in rarest_first},
        rarest=tuple(_rarest(counts, rarest_first[:RAREST])),
    )


def _counts(words: Sequence[str], stored: int) -> dict[str, int]:
    """How many pages have each word. To count a common one takes long, so its number is kept."""
    counts = {}
    for word in words:
        count, then = _common.get(word, (0, 0))
        if count and abs(stored - then) <= SOON * then:
            counts[word] = count
    counted = _database().counts([word for word in words if word not in counts])
    _common.update((w, (n, stored)) for w, n in counted.items() if n > TOO_COMMON)
    return counts | counted


def _rarest(counts: Mapping[str, int], rarest_first: Sequence[str]) -> Iterator[str]:
    brought = accumulate(counts[word] for word in rarest_first)
    return (word for word, pages in zip(rarest_first, brought, strict=True) if pages <= TOO_COMMON)


def _candidates(
    asked: _Asked, base: str, namespaces: Collection[Namespace], limit: int
) -> set[int]:
    """The rows of pages that may be the best."""
    database, most, words = _database(), max(RANKED, limit), asked.rarities
    rows = set(database.having_all(words, base=base, namespaces=namespaces, most=most))
    rarest = asked.rarest or (tuple(words)[:1] if len(rows) < limit else ())
    if rarest and len(words) > 1:
        told = {word: words[word] for word in rarest}
        rows.update(database.having_any(told, base=base, namespaces=namespaces, most=most))
    return rows


def _ranked(rows: Collection[int], rarities: Mapping[str, float]) -> list[tuple[PageName, float]]:
    columns = ("page__namespace", "page__title", "title", "body")
    found_words = models.KnowledgePageWords.objects.filter(pk__in=rows).values_list(*columns)
    scored = [
        (
            PageName(namespace=namespace, title=title),
            relevance(PageWords(title=title_words, body=body_words), rarities),
        )
        for namespace, title, title_words, body_words in found_words
    ]
    return sorted(scored, key=lambda item: (-item[1], item[0].title, item[0].namespace))


def _row(page_id: int, page: Page) -> models.KnowledgePageWords:
    words = words_of_page(page)
    return models.KnowledgePageWords(page_id=page_id, title=words.title, body=words.body)


def _database() -> PageDatabase:
    try:
        return DATABASES[connection.vendor]
    except KeyError:
        raise StoreError(
            f"knowledge bases in the game's database are searched on SQLite and PostgreSQL, and "
            f"this game runs on {connection.vendor}: move it, or keep the pages in a MediaWiki"
        ) from None
