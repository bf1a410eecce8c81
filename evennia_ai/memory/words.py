"""Words of memories and of what is said: how two texts are compared without a model.

A word is a run of letters and digits in any script; scripts without blanks between words count by
pairs of neighbours. The commonest words count for nothing, long ones by their beginning, so that
most endings make no difference.
"""

import re
import unicodedata
from itertools import pairwise
from typing import Final

from evennia_ai.text.words import COMMON_WORDS, unspaced_runs
from evennia_ai.text.words import words_of as spaced_words

STEM: Final = 6
"""Letters of a word that count: enough for "remember" and "remembrance" to be one."""
_ARTICLES: Final = frozenset({"a", "an", "the"})
_ANY_WORD: Final = re.compile(r"\w+")
_PLURAL_FROM: Final = 4
_FULL_WEIGHT: Final = 6


def words_of(text: str) -> frozenset[str]:
    """The words of `text` as they are compared: folded, without endings."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = {_stem(word) for word in spaced_words(folded) if word not in COMMON_WORDS}
    for run in unspaced_runs(folded):
        words.update(map("".join, pairwise(run)) if len(run) > 1 else run)
    return frozenset(words)


def wording_of(text: str) -> tuple[str, ...]:
    """The words of `text` in their order, without articles and marks.

    Two texts of one wording say the same; "Anna hit Ben" and "Ben hit Anna" have two.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return tuple(word for word in _ANY_WORD.findall(folded) if word not in _ARTICLES)


def weight_of(word: str) -> float:
    """How much a word tells by its length alone: short ones are mostly articles and the like.

    A word of a script without blanks is a pair of characters, and tells as much as a long one.
    """
    if next(iter(unspaced_runs(word)), ""):
        return 1.0 if len(word) > 1 else 0.5
    return min(len(word), _FULL_WEIGHT) / _FULL_WEIGHT


def _stem(word: str) -> str:
    if len(word) >= _PLURAL_FROM and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:STEM]
