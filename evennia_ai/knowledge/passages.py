"""Passages: a page's text in parts of a bounded length, and the part that answers a query best.

A part ends where a paragraph does; a paragraph that is too long where a sentence does, a sentence
where a word does, and a word without end between two letters as they are seen.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from evennia_ai.knowledge.relevance import PageWords, indexed_words, relevance

MAX_CHARACTERS: Final = 1200

_PARAGRAPHS: Final = re.compile(r"\n[ \t]*\n\s*")
_SENTENCE_END: Final = re.compile(r"[.!?…][\"'”’»)\]]{0,4}\s+|[。！？][」』”’）]{0,4}|\n")
_BLANK: Final = re.compile(r"\s+")
# How far back a letter with its marks may begin.
_MOST_MARKS: Final = 64
_JOINER: Final = "\u200d"


def chunks(body: str) -> tuple[str, ...]:
    """The parts of a text in their order, none empty, none over `MAX_CHARACTERS`."""
    paragraphs = (part.strip() for part in _PARAGRAPHS.split(body))
    pieces = (piece for paragraph in paragraphs for piece in _pieces(paragraph))
    return tuple(_packed(pieces, joint="\n\n"))


def _pieces(paragraph: str) -> Iterable[str]:
    """A paragraph, or what it falls into."""
    return _fitting(paragraph, [_sentences, _between_blanks, _letters])


def _fitting(text: str, cuts: list[Callable[[str], Iterator[str]]]) -> Iterator[str]:
    """The text where it fits, else its parts by the first cut, and those by the next."""
    if len(text) <= MAX_CHARACTERS:
        yield text
        return
    cut, *finer = cuts
    parts = (part for piece in cut(text) for part in _fitting(piece, finer))
    yield from (part.strip() for part in _packed(parts, joint=""))


def _packed(parts: Iterable[str], *, joint: str) -> Iterator[str]:
    """As many parts together as fit."""
    packed: list[str] = []
    size = 0
    for part in parts:
        if packed and size + len(joint) + len(part) > MAX_CHARACTERS:
            yield joint.join(packed)
            packed, size = [], 0
        if part:
            size += len(part) + (len(joint) if packed else 0)
            packed.append(part)
    if packed:
        yield joint.join(packed)


def _sentences(text: str) -> Iterator[str]:
    return _cut_after(text, _SENTENCE_END)


def _between_blanks(text: str) -> Iterator[str]:
    return _cut_after(text, _BLANK)


def _cut_after(text: str, border: re.Pattern[str]) -> Iterator[str]:
    start = 0
    for found in border.finditer(text):
        yield text[start : found.end()]
        start = found.end()
    yield text[start:]


def _letters(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > MAX_CHARACTERS:
        stop = _letter_border(text, start + MAX_CHARACTERS)
        yield text[start:stop]
        start = stop
    yield text[start:]


def _letter_border(text: str, at: int) -> int:
    """The last place up to `at` where no letter is torn from its marks; `at` where all are."""
    for place in range(at, at - _MOST_MARKS, -1):
        if not _joined(text[place - 1], text[place]):
            return place
    return at


def _joined(before: str, after: str) -> bool:
    """Whether two characters are a part of one letter, as far as the two alone tell."""
    marks = (
        unicodedata.category(after) in {"Mn", "Me", "Mc"} or "\U0001f3fb" <= after <= "\U0001f3ff"
    )
    flags = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff"
    return marks or flags or _JOINER in {before, after}


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
