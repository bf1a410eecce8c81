"""Searching the words of pages in SQLite, by FTS5. `page_search.py` is what others call.

Words come folded and without any mark; they are quoted all the same, so that "and", "or" and
"near" are words.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from django.db import connection

from evennia_ai.knowledge.pages.page import NAMESPACES, Namespace

_COUNTS: Final = "SELECT term, doc FROM evennia_ai_pagewords_counts WHERE term IN ({marks})"
# One page more or less in the middle of equal ones changes nothing, as the best are ranked again.
_FOUND: Final = """
SELECT evennia_ai_pagewords.rowid FROM evennia_ai_pagewords
JOIN evennia_ai_knowledgepage AS page ON page.id = evennia_ai_pagewords.rowid
WHERE evennia_ai_pagewords MATCH %s AND page.namespace IN ({marks})
AND page.base_id = (SELECT id FROM evennia_ai_knowledgebase WHERE key = %s)
ORDER BY bm25(evennia_ai_pagewords, 1.5, 1.0), evennia_ai_pagewords.rowid LIMIT %s
"""


def counts(words: Sequence[str]) -> dict[str, int]:
    """How many pages have each word, of all bases; a word that none has is left out."""
    if not words:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS.format(marks=_marks(words)), [*words])
        return dict(cursor.fetchall())


def having_all(
    words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
) -> list[int]:
    """Pages that have all these words, the best first as far as the database knows."""
    return _found(" AND ".join(map(_quoted, words)), base, namespaces, most)


def having_any(
    words: Mapping[str, float], *, base: str, namespaces: Collection[Namespace], most: int
) -> list[int]:
    """Pages that have one of these words or more."""
    return _found(" OR ".join(map(_quoted, words)), base, namespaces, most)


def _found(match: str, base: str, namespaces: Collection[Namespace], most: int) -> list[int]:
    within = tuple(namespaces) or NAMESPACES
    with connection.cursor() as cursor:
        cursor.execute(_FOUND.format(marks=_marks(within)), [match, *within, base, most])
        return [row[0] for row in cursor.fetchall()]


def _quoted(word: str) -> str:
    return '"{}"'.format(word.replace('"', '""'))


def _marks(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))
