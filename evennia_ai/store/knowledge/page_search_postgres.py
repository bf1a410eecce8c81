"""Searching the words of pages in PostgreSQL, by its lexemes. `page_search.py` is what others call.

The lexemes are our own words, so no dictionary and no parser of PostgreSQL's changes them. Its
ranking of many matches is slow and knows nothing of rare words: the query adds up what each word
tells instead.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from django.db import connection

from evennia_ai.knowledge.pages.page import NAMESPACES, Namespace
from evennia_ai.knowledge.relevance import TITLE

COUNTED: Final = 10_000
"""A word that more pages have is just common."""

_COUNTS: Final = """
SELECT asked.word, (
    SELECT count(*) FROM (
        SELECT 1 FROM evennia_ai_knowledgepagewords
        WHERE body_lexemes @@ asked.query::tsquery LIMIT %s
    ) AS counted
) FROM unnest(%s::text[], %s::text[]) AS asked(word, query)
"""
_FOUND: Final = """
SELECT words.page_id FROM evennia_ai_knowledgepagewords AS words
JOIN evennia_ai_knowledgepage AS page ON page.id = words.page_id
WHERE words.body_lexemes @@ %s::tsquery AND page.namespace = ANY(%s)
AND page.base_id = (SELECT id FROM evennia_ai_knowledgebase WHERE key = %s)
ORDER BY {told} DESC, words.page_id LIMIT %s
"""
_TOLD: Final = "(words.{column}_lexemes @@ %s::tsquery)::int * %s::float8"  # a title counts besides


def counts(words: Sequence[str]) -> dict[str, int]:
    """How many pages have each word, of all bases; a word that none has is left out."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [COUNTED, [*words], [_quoted(word) for word in words]])
        return {word: count for word, count in cursor.fetchall() if count}


def having_all(
    words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
) -> list[int]:
    """Pages that have all these words, the best first as far as the database knows."""
    return _found(" & ".join(map(_quoted, words)), words, base, namespaces, most)


def having_any(
    words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
) -> list[int]:
    """Pages that have one of these words or more."""
    return _found(" | ".join(map(_quoted, words)), words, base, namespaces, most)


def _found(
    query: str,
    words: Mapping[str, float],
    base: str,
    namespaces: Collection[Namespace],
    most: int,
) -> list[int]:
    told, values = [], []
    for column, weight in (("title", TITLE), ("body", 1.0)):
        told += [_TOLD.format(column=column)] * len(words)
        for word, rarity in words.items():
            values += [_quoted(word), weight * rarity]
    within = [*(namespaces or NAMESPACES)]
    with connection.cursor() as cursor:
        cursor.execute(_FOUND.format(told=" + ".join(told)), [query, within, base, *values, most])
        return [row[0] for row in cursor.fetchall()]


def _quoted(word: str) -> str:
    return "'{}'".format(word.replace("\\", "\\\\").replace("'", "''"))
