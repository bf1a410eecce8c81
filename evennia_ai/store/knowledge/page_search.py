"""Searching pages in the game's own database: which are looked at, and which of them are best.

The database finds pages by their words, those with all of them first, then those with one of the
rarest: to rank each page that has some common word would take long, and find no better one. What it
found is ranked here, by one measure, so SQLite and PostgreSQL answer alike.

Words come folded and without any mark, so what a player writes is never a query; they are quoted
all the same, so that "and", "or" and "near" are words. The lexemes of PostgreSQL are our own words:
no dictionary and no parser of its own changes them. Its ranking of many matches is slow and knows
nothing of rare words: the query adds up what each word tells instead.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal

from django.db import DatabaseError, connection

from evennia_ai import models
from evennia_ai.errors import StoreError
from evennia_ai.knowledge.pages.page import NAMESPACES, Namespace, Page, PageName
from evennia_ai.knowledge.relevance import (
    TITLE,
    PageWords,
    asked_words,
    rarity,
    relevance,
    words_of_page,
)

Joint = Literal["all", "any"]

_SQLITE_COUNTS: Final = "SELECT term, doc FROM evennia_ai_pagewords_counts WHERE term IN ({marks})"
# One page more or less in the middle of equal ones changes nothing, as the best are ranked again.
_SQLITE_FOUND: Final = """
SELECT evennia_ai_pagewords.rowid FROM evennia_ai_pagewords
JOIN evennia_ai_knowledgepage AS page ON page.id = evennia_ai_pagewords.rowid
WHERE evennia_ai_pagewords MATCH %s AND page.namespace IN ({marks})
AND page.base_id = (SELECT id FROM evennia_ai_knowledgebase WHERE key = %s)
ORDER BY bm25(evennia_ai_pagewords, 1.5, 1.0), evennia_ai_pagewords.rowid LIMIT %s
"""

COUNTED: Final = 10_000
"""A word that more pages have is just common."""

_POSTGRES_COUNTS: Final = """
SELECT asked.word, (
    SELECT count(*) FROM (
        SELECT 1 FROM evennia_ai_knowledgepagewords
        WHERE body_lexemes @@ asked.query::tsquery LIMIT %s
    ) AS counted
) FROM unnest(%s::text[], %s::text[]) AS asked(word, query)
"""
_POSTGRES_FOUND: Final = """
SELECT words.page_id FROM evennia_ai_knowledgepagewords AS words
JOIN evennia_ai_knowledgepage AS page ON page.id = words.page_id
WHERE words.body_lexemes @@ %s::tsquery AND page.namespace = ANY(%s)
AND page.base_id = (SELECT id FROM evennia_ai_knowledgebase WHERE key = %s)
ORDER BY {told} DESC, words.page_id LIMIT %s
"""
# A title counts besides.
_POSTGRES_TOLD: Final = "(words.{column}_lexemes @@ %s::tsquery)::int * %s::float8"


@dataclass(frozen=True, slots=True)
class PageDatabase:
    """How one kind of database finds pages by words."""

    counts: Callable[[Sequence[str]], dict[str, int]]
    """How many pages have each word, of all bases; a word that none has is left out."""
    found: Callable[[Joint, Mapping[str, float], str, Sequence[Namespace], int], list[int]]
    """So many pages of a base and of namespaces that have all these words, or any of them.

    The best first, as far as the database knows."""


def _sqlite_counts(words: Sequence[str]) -> dict[str, int]:
    return dict(_fetched(_SQLITE_COUNTS.format(marks=_marks(words)), [*words])) if words else {}


def _sqlite_found(
    joint: Joint, words: Mapping[str, float], base: str, within: Sequence[Namespace], most: int
) -> list[int]:
    match = {"all": " AND ", "any": " OR "}[joint].join(map(_fts_quoted, words))
    query = _SQLITE_FOUND.format(marks=_marks(within))
    return [row[0] for row in _fetched(query, [match, *within, base, most])]


def _postgres_counts(words: Sequence[str]) -> dict[str, int]:
    rows = _fetched(_POSTGRES_COUNTS, [COUNTED, [*words], [_lexeme(word) for word in words]])
    return {word: count for word, count in rows if count}


def _postgres_found(
    joint: Joint, words: Mapping[str, float], base: str, within: Sequence[Namespace], most: int
) -> list[int]:
    match = {"all": " & ", "any": " | "}[joint].join(map(_lexeme, words))
    told, values = [], []
    for column, weight in (("title", TITLE), ("body", 1.0)):
        told += [_POSTGRES_TOLD.format(column=column)] * len(words)
        for word, tells in words.items():
            values += [_lexeme(word), weight * tells]
    query = _POSTGRES_FOUND.format(told=" + ".join(told))
    return [row[0] for row in _fetched(query, [match, [*within], base, *values, most])]


def _fetched(query: str, values: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


def _fts_quoted(word: str) -> str:
    return '"{}"'.format(word.replace('"', '""'))


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _lexeme(word: str) -> str:
    return "'{}'".format(word.replace("\\", "\\\\").replace("'", "''"))


DATABASES: Final[Mapping[str, PageDatabase]] = {
    "sqlite": PageDatabase(_sqlite_counts, _sqlite_found),
    "postgresql": PageDatabase(_postgres_counts, _postgres_found),
}
"""By what Django calls the kind of database."""


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
    within = tuple(namespaces) or NAMESPACES
    rows = set(database.found("all", words, base, within, most))
    rarest = asked.rarest or (tuple(words)[:1] if len(rows) < limit else ())
    if rarest and len(words) > 1:
        told = {word: words[word] for word in rarest}
        rows.update(database.found("any", told, base, within, most))
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
