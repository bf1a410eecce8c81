"""How the words of pages are found in SQLite and in PostgreSQL; `page_search.py` asks here.

Words come folded and without any mark; they are quoted all the same, so that "and", "or" and
"near" are words. The lexemes of PostgreSQL are our own words, so no dictionary and no parser of its
own changes them. Its ranking of many matches is slow and knows nothing of rare words: the query
adds up what each word tells instead.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from django.db import connection

from evennia_ai.knowledge.pages.page import NAMESPACES, Namespace
from evennia_ai.knowledge.relevance import TITLE

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


class PageDatabase(Protocol):
    """How one kind of database finds pages by words."""

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        """How many pages have each word, of all bases; a word that none has is left out."""
        ...

    def having_all(
        self,
        words: Mapping[str, float],
        *,
        base: str,
        namespaces: Collection[Namespace],
        most: int,
    ) -> list[int]:
        """Pages that have all these words, the best first as far as the database knows."""
        ...

    def having_any(
        self,
        words: Mapping[str, float],
        *,
        base: str,
        namespaces: Collection[Namespace],
        most: int,
    ) -> list[int]:
        """Pages that have one of these words or more."""
        ...


class SqlitePages:
    """Pages in SQLite, searched by FTS5."""

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        if not words:
            return {}
        with connection.cursor() as cursor:
            cursor.execute(_SQLITE_COUNTS.format(marks=_marks(words)), [*words])
            return dict(cursor.fetchall())

    def having_all(
        self, words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
    ) -> list[int]:
        return self._found(" AND ".join(map(_fts_quoted, words)), base, namespaces, most)

    def having_any(
        self, words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
    ) -> list[int]:
        return self._found(" OR ".join(map(_fts_quoted, words)), base, namespaces, most)

    def _found(
        self, match: str, base: str, namespaces: Collection[Namespace], most: int
    ) -> list[int]:
        within = tuple(namespaces) or NAMESPACES
        with connection.cursor() as cursor:
            cursor.execute(_SQLITE_FOUND.format(marks=_marks(within)), [match, *within, base, most])
            return [row[0] for row in cursor.fetchall()]


class PostgresPages:
    """Pages in PostgreSQL, searched by its lexemes."""

    def counts(self, words: Sequence[str]) -> dict[str, int]:
        with connection.cursor() as cursor:
            cursor.execute(_POSTGRES_COUNTS, [COUNTED, [*words], [_lexeme(word) for word in words]])
            return {word: count for word, count in cursor.fetchall() if count}

    def having_all(
        self, words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
    ) -> list[int]:
        return self._found(" & ".join(map(_lexeme, words)), words, base, namespaces, most)

    def having_any(
        self, words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
    ) -> list[int]:
        return self._found(" | ".join(map(_lexeme, words)), words, base, namespaces, most)

    def _found(
        self,
        query: str,
        words: Mapping[str, float],
        base: str,
        namespaces: Collection[Namespace],
        most: int,
    ) -> list[int]:
        told, values = [], []
        for column, weight in (("title", TITLE), ("body", 1.0)):
            told += [_POSTGRES_TOLD.format(column=column)] * len(words)
            for word, rarity in words.items():
                values += [_lexeme(word), weight * rarity]
        within = [*(namespaces or NAMESPACES)]
        with connection.cursor() as cursor:
            cursor.execute(
                _POSTGRES_FOUND.format(told=" + ".join(told)), [query, within, base, *values, most]
            )
            return [row[0] for row in cursor.fetchall()]


def _fts_quoted(word: str) -> str:
    return '"{}"'.format(word.replace('"', '""'))


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def _lexeme(word: str) -> str:
    return "'{}'".format(word.replace("\\", "\\\\").replace("'", "''"))


DATABASES: Final[Mapping[str, PageDatabase]] = {
    "sqlite": SqlitePages(),
    "postgresql": PostgresPages(),
}
"""By what Django calls the kind of database."""
