"""Words of tasks and pages: how texts are compared without a model.

A word is a run of letters and digits, whatever its case and its width. Scripts without blanks
between words give each of their characters as a word, so that a phrase in them is found as well.
"""

import re
import unicodedata
from typing import Final

# Thai to Burmese, Khmer, Han with kana, Han of the other planes.
_UNSPACED: Final = "\u0e00-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD: Final = re.compile(f"(?=\\w)[{_UNSPACED}]|[^\\W_{_UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """The words of `text` in their order, folded."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def phrase_of(text: str) -> str:
    """The words of `text` with a blank around each: one phrase is in another as a text is."""
    return f" {' '.join(words_of(text))} "
