"""Word forms: the stem that a word shares with its inflected forms, such as *wolves* with *wolf*.

Stems are those of the Snowball project (Porter, 2001), from the package `snowballstemmer`. The
tables here contain what its rules cannot know: words with irregular forms, and forms that a rule
would wrongly merge. A stem is not always a word and is never shown. Scripts without blanks between
words have no stems; in these scripts pairs of characters are searched.
"""

import re
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

Languages = tuple[str, ...]
"""Codes of languages (ISO 639-1).

A word is stemmed in each of these languages that uses the word's script.
"""

_SCRIPTS: Final = MappingProxyType(
    {
        "latin": re.compile("[A-Za-z\u00aa\u00ba\u00c0-\u024f\u1e00-\u1eff]+"),
        "greek": re.compile("[\u0370-\u03ff\u1f00-\u1fff]+"),
        "cyrillic": re.compile("[\u0400-\u052f]+"),
    }
)


def _word_table(words: str) -> dict[str, str]:
    return dict(pair.split() for pair in words.split(","))


_ALGORITHMS: Final = MappingProxyType(
    {
        "latin": _word_table(
            "ca catalan, da danish, de german, en english, eo esperanto, es spanish, et estonian,"
            "eu basque, fi finnish, fr french, ga irish, hu hungarian, id indonesian, it italian,"
            "lt lithuanian, nl dutch, no norwegian, pt portuguese, ro romanian, sv swedish,"
            "tr turkish"
        ),
        "greek": _word_table("el greek"),
        "cyrillic": _word_table("ru russian"),
    }
)
LANGUAGES: Final = tuple(sorted(code for codes in _ALGORITHMS.values() for code in codes))
"""The codes of all languages for which stems are available."""

# Maps irregular forms to the word that is stemmed in their place, by language.
_IRREGULAR: Final = {
    "en": _word_table(
        "women woman, children child, feet foot, teeth tooth, geese goose, mice mouse, lice louse,"
        "oxen ox, people person, knives knife, wives wife, midwives midwife, lives life,"
        "leaves leaf, loaves loaf, thieves thief, halves half, calves calf, dwarves dwarf,"
        "scarves scarf, wharves wharf, hooves hoof, sheaves sheaf, shelves shelf, elves elf"
    ),
    "es": _word_table("mujer mujeres"),
    "fr": _word_table(
        "yeux oeil, cieux ciel, travaux travail, vitraux vitrail, coraux corail, baux bail,"
        "soupiraux soupirail, messieurs monsieur, mesdames madame"
    ),
    "ru": {
        **{f"друз{end}": "друг" for end in ("ья", "ей", "ьям", "ьями", "ьях")},
        **{f"люд{end}": "человек" for end in ("и", "ей", "ям", "ьми", "ях")},
        **{f"дет{end}": "ребёнок" for end in ("и", "ей", "ям", "ьми", "ях")},
        **{f"д{end}": "день" for end in ("ни", "ня", "ней", "ням", "нями", "нях", "нём")},
        **_word_table("башен башня, окон окно"),
    },
}
# Replacements by language: those of `_BEFORE` apply to a word before stemming, those of `_AFTER` to
# its stem.
_BEFORE: Final = {
    "en": ((re.compile("wolves$"), "wolf"), (re.compile(r"(?<!o)men$"), "man")),
    "es": (
        (re.compile("ces$"), "z"),
        (re.compile("dades$"), "dad"),
        (re.compile("(?<=\u00ed[ao])s$"), ""),
    ),
    "fr": ((re.compile("\u0153"), "oe"),),
}
_AFTER: Final = {
    "de": ((re.compile(r"(?<=\w{4}in)n$"), ""),),
    # Removes a vowel that Russian nouns have only in some forms: замок and замки, отец and отцы,
    # огонь and огня.
    "ru": ((re.compile(r"(?<=\w\w)[оеё](?=[кц]$)|(?<=^ог)о(?=н$)|(?<=^церк)о(?=в$)"), ""),),
}


def stems_of(word: str, languages: Languages) -> tuple[str, ...]:
    """Return the stems of a lower-case word in each of the languages that uses its script.

    The stems are in the order of the languages, without duplicates. The word must have its accents,
    because without them it may be another word.
    """
    script = next((name for name, letters in _SCRIPTS.items() if letters.fullmatch(word)), "")
    known = _ALGORITHMS.get(script, {})
    return tuple(dict.fromkeys(_stem(word, code) for code in languages if code in known))


def _stem(word: str, language: str) -> str:
    word = _IRREGULAR.get(language, {}).get(word, word)
    for pattern, text in _BEFORE.get(language, ()):
        word = pattern.sub(text, word)
    stem: str = _stemmer(language).stemWord(word)
    for pattern, text in _AFTER.get(language, ()):
        stem = pattern.sub(text, stem)
    return stem


@lru_cache
def _stemmer(language: str) -> Any:
    # The stemmers of thirty languages are slow to import, and most scenarios stem no word.
    import snowballstemmer

    (algorithm,) = (codes[language] for codes in _ALGORITHMS.values() if language in codes)
    return snowballstemmer.stemmer(algorithm)
