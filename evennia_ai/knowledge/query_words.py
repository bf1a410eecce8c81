"""Words of pages and of what is asked of them: made in one way, wherever they are looked up.

A database is given words that were folded here, never a text: so it finds the same on SQLite and
on PostgreSQL, in any script, and what a player writes is never read as its query language. Case,
accents and English plurals make no difference; scripts without blanks between words count by
pairs of neighbours. Pure: this module knows no database.
"""

import re
import unicodedata
from itertools import chain, pairwise
from typing import Final

from evennia_ai.text.words import pairs_of, unspaced_runs
from evennia_ai.text.words import words_of as spaced_words

MOST_ASKED: Final = 32
"""Words of a query that count: the first ones, each once."""

MOST_ASKED_CHARACTERS: Final = 4_000
"""Of a query: nobody asks longer, and to fold more would take time."""

MOST_INDEXED_CHARACTERS: Final = 150_000
"""Of the words of a page: what PostgreSQL has room for whatever the script is."""

LONGEST: Final = 64
"""Characters of a word that count."""

_ACCENTS: Final = re.compile("[\u0300-\u036f]")
_POSSESSIVE: Final = re.compile(r"['\u2019]s\b")
_PLURAL_FROM: Final = 4
_NO_PLURALS: Final = ("ss", "us", "is")


def indexed_words(text: str) -> str:
    """All words of a page's text in one string, a blank between two, as databases keep them."""
    folded = _folded(text[: 2 * MOST_INDEXED_CHARACTERS])
    joined = " ".join(chain(_words(folded), pairs_of(folded)))
    if len(joined) <= MOST_INDEXED_CHARACTERS:
        return joined
    return joined[:MOST_INDEXED_CHARACTERS].rpartition(" ")[0]


def asked_words(query: str) -> tuple[str, ...]:
    """The different words of a query in their order, at most `MOST_ASKED`.

    Marks and signs that belong to no word are dropped, so a query of them alone asks for nothing.
    """
    folded = _folded(query[:MOST_ASKED_CHARACTERS])
    pairs = chain.from_iterable(
        map("".join, pairwise(run)) if len(run) > 1 else run for run in unspaced_runs(folded)
    )
    return tuple(dict.fromkeys(chain(_words(folded), pairs)))[:MOST_ASKED]


def _words(folded: str) -> list[str]:
    return [_singular(word)[:LONGEST] for word in spaced_words(folded)]


def _folded(text: str) -> str:
    """The text in small letters, without accents, marks of possession and underscores."""
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFKC", _ACCENTS.sub("", parted))
    return _POSSESSIVE.sub("", text.casefold()).replace("_", " ")


def _singular(word: str) -> str:
    """The word without the ending of an English plural (Harman's S stemmer, 1991)."""
    if len(word) < _PLURAL_FROM or not word.endswith("s") or word.endswith(_NO_PLURALS):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return word[:-3] + "y"
    return word[:-1]
