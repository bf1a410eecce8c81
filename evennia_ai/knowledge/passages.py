"""Passages: the part of a page that answers a query best. Pure."""

from collections.abc import Mapping

from evennia_ai.knowledge.chunks import chunks
from evennia_ai.knowledge.query_words import indexed_words
from evennia_ai.knowledge.relevance import PageWords, relevance


def passage(body: str, rarities: Mapping[str, float]) -> str:
    """The chunk of a text that has most of these words, by how much they tell.

    The first one where several are as good or none has any; "" for an empty text.
    """
    parts = chunks(body)
    if len(parts) < 2 or not rarities:
        return parts[0] if parts else ""
    return max(parts, key=lambda part: relevance(_words_of(part), rarities))


def _words_of(part: str) -> PageWords:
    return PageWords(title="", body=indexed_words(part))
