"""Search the texts of pages in the game's own database.

The index consists of postings, which this module maintains as rows; `engine/knowledge/postings.py`
defines them and the ranking of pages. It is the same on every database. A search covers one base.
It reads the postings of its words in one query, and the names of its results in another. Words are
folded and passed as parameters, so a player's text is never part of the SQL.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from django.db import DatabaseError, connection

from evennia_ai import models
from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import NAMESPACES, Namespace, Page, PageName
from evennia_ai.engine.knowledge.postings import (
    SPAN_PAGES,
    Posting,
    Term,
    best_pages,
    pack_weights,
    page_weights,
    term_rarities,
    unpack_weights,
)
from evennia_ai.engine.knowledge.relevance import query_weights
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.store.core.reading import rows_of
from evennia_ai.store.core.refusals import reason_of
from evennia_ai.store.core.snapshots import KNOWLEDGE, changing
from evennia_ai.store.knowledge.knowledge_bases import (
    base_id,
    indexed_for,
    languages_in,
    languages_of,
    note_base_written,
)
from evennia_ai.store.knowledge.page_rows import page_value

INDEXED: Final = 10_000
"""How many pages are indexed at once. Each batch rewrites the postings of common words."""

MOST_WORDS: Final = 500
"""The most words of a query, because databases limit the number of parameters."""

_READ: Final = """
SELECT field, word, span, pages, packed FROM evennia_ai_knowledgeposting
WHERE base_id = %s AND word IN ({})
"""
_NAMES: Final = "SELECT id, namespace, title FROM evennia_ai_knowledgepage WHERE id IN ({})"
_WRITE: Final = """
INSERT INTO evennia_ai_knowledgeposting (base_id, field, word, span, pages, packed)
VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (base_id, word, field, span)
DO UPDATE SET pages = excluded.pages, packed = excluded.packed
"""
_REMOVE: Final = """
DELETE FROM evennia_ai_knowledgeposting
WHERE base_id = %s AND field = %s AND word = %s AND span = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """A page before and after a change.

    None means that the page did not exist, or was removed.
    """

    page_id: int
    was: Page | None
    now: Page | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a search in one knowledge base."""

    names: tuple[tuple[PageName, float], ...] = ()
    """The names of the pages with their scores, best first."""
    rarities: Mapping[str, float]
    """The weight of each word and stem, by how rare it is.

    Texts are counted, or titles if no text has the word.
    """
    languages: Languages = ()
    """The languages whose word forms were searched for."""


# The new weights in a span of pages, by term and by the index of the page. 0 removes the page.
_Changed = dict[Term, dict[int, int]]


def index_changes(base_pk: int, changes: Iterable[PageChange]) -> None:
    """Update the index for changed pages, inside the transaction of the change.

    Many pages at once take far less time than one by one.
    """
    # Locks the row, so that processes that change pages of one base take turns.
    rows = models.KnowledgeBase.objects.select_for_update().filter(pk=base_pk)
    languages = languages_in(rows.values_list("indexed_for", flat=True).get())
    spans: dict[int, _Changed] = defaultdict(lambda: defaultdict(dict))
    for change in changes:
        span, place = divmod(change.page_id, SPAN_PAGES)
        was = page_weights(change.was, languages) if change.was else {}
        now = page_weights(change.now, languages) if change.now else {}
        for term in {**was, **now}:
            if was.get(term) != now.get(term):
                spans[span][term][place] = now.get(term, 0)
    for span, changed in spans.items():
        _write(base_pk, span, changed)


def reindex_bases(languages: Languages) -> None:
    """Index all pages of the knowledge bases whose index covers other languages than these."""
    wanted = indexed_for(languages)
    for row in models.KnowledgeBase.objects.exclude(indexed_for=wanted):
        with changing(KNOWLEDGE, f"indexing knowledge base '{row.key}'", by=THE_GAME):
            models.KnowledgePosting.objects.filter(base=row).delete()
            row.indexed_for = wanted
            row.save(update_fields=["indexed_for"])
            pages = models.KnowledgePage.objects.filter(base=row).order_by("pk").iterator()
            while lot := [_as_new(row.key, page) for page in islice(pages, INDEXED)]:
                index_changes(row.pk, lot)
            note_base_written()


def _as_new(base: str, row: models.KnowledgePage) -> PageChange:
    now = page_value(row, base=base, revision=row.revision)
    return PageChange(page_id=row.pk, was=None, now=now)


def _write(base_pk: int, span: int, changed: _Changed) -> None:
    kept, gone = [], []
    stored = _stored_postings(base_pk, span, [*{term.word for term in changed}])
    for term, places in changed.items():
        weights = unpack_weights(stored[term]) if term in stored else {}
        weights.update(places)
        there = {place: weight for place, weight in weights.items() if weight}
        if there:
            kept.append((base_pk, *term, span, len(there), pack_weights(there)))
        else:
            gone.append((base_pk, *term, span))
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE, kept)
        cursor.executemany(_REMOVE, gone)


def _stored_postings(base_pk: int, span: int, words: Sequence[str]) -> dict[Term, bytes]:
    stored: dict[Term, bytes] = {}
    for start in range(0, len(words), MOST_WORDS):
        rows = models.KnowledgePosting.objects.filter(
            base_id=base_pk, span=span, word__in=words[start : start + MOST_WORDS]
        )
        for field, word, told in rows.values_list("field", "word", "packed"):
            stored[Term(field, word)] = bytes(told)
    return stored


def search_pages(
    base: str, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
) -> Found:
    """Return the pages of a knowledge base that match a query, best first, then by title.

    Raises:
        StoreError: the database cannot be searched.
    """
    languages = languages_of(base)
    asked = query_weights(query, languages)
    if not asked:
        return Found(rarities={})
    try:
        postings = _postings(base, [*asked])
        tells = term_rarities(postings)
        rarities = {term: asked[term.word] * rarity for term, rarity in tells.items()}
        pages = best_pages(postings, rarities, namespaces=namespaces or NAMESPACES, most=limit)
        names = _named(pages)
    except DatabaseError as error:
        raise StoreError(f"the pages of '{base}' cannot be searched: {reason_of(error)}") from error
    in_titles = {term.word: told for term, told in rarities.items() if term.field == "title"}
    in_texts = {term.word: told for term, told in rarities.items() if term.field == "body"}
    return Found(names=tuple(names[:limit]), rarities=in_titles | in_texts, languages=languages)


def _postings(base: str, words: Sequence[str]) -> list[Posting]:
    """Return the postings of the words, and those of all namespaces.

    A folded word never looks like the name of a namespace. Raw SQL is used, because Django's ORM
    would take a third of the time of a search.
    """
    asked = [*words, *NAMESPACES]
    return [
        Posting(term=Term(field, word), span=span, pages=pages, packed=bytes(told))
        for field, word, span, pages, told in rows_of(_READ, of=[base_id(base)], among=asked)
    ]


def _named(pages: Sequence[tuple[int, float]]) -> list[tuple[PageName, float]]:
    scores = dict(pages)
    named = [
        (PageName(namespace=namespace, title=title), scores[page_id])
        for page_id, namespace, title in rows_of(_NAMES, among=[*scores])
    ]
    return sorted(named, key=lambda item: (-item[1], item[0].title, item[0].namespace))
