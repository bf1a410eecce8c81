"""Safe metadata: all that an NPC is told of a restricted knowledge base before it searches it.

Four fields and no others: name, id, a hint and keywords, which its author wrote to be told. There
is no way from the summary, the topics or a page into them. Numbers in any form, dates, headings and
titles of pages are taken out of the hint, and a hint that repeats a page is left out. Pure.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.pages.page import BaseInfo
from evennia_ai.knowledge.restricted.leaks import Protected, leak, protected
from evennia_ai.knowledge.restricted.numbers import Place, places
from evennia_ai.text.letter_forms import folded

MAX_NAME: Final = 120
MAX_HINT: Final = 200
MAX_KEYWORD: Final = 48
MAX_KEYWORDS: Final = 5

_FORBIDDEN: Final = re.compile(r"[{}\[\]<>`%]")
_BLANKS: Final = re.compile(r"\s+")
_MONTHS: Final = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
)
_WEEKDAYS: Final = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
# A month that is also a word counts as one with a capital letter alone: "May", not "may".
_DATE: Final = re.compile(rf"\b(?:(?i:{_WEEKDAYS})|(?!(?:may|march|august)\b)(?i:{_MONTHS}))\b")
_NUMBER: Final = re.compile(r"\S*\d\S*")
_MANY: Final = re.compile(r"\b(?:hundreds|thousands|millions|dozens|scores)\b", re.IGNORECASE)
_HEADING: Final = re.compile(r"^[ \t]*(?:=+[^=\n]*=+|#+[^\n]*)[ \t]*$", re.MULTILINE)
_HEADING_WORDS: Final = re.compile(
    r"^[ \t]*(?:=+[ \t]*([^=\n]+?)[ \t]*=+|#+[ \t]+([^\n]+?))[ \t]*$", re.MULTILINE
)
_GAP: Final = re.compile(r"\s+(?=[,.;:!?])|(?<=\()\s+|\s+(?=\))")
_EMPTY: Final = re.compile(r"\(\s*\)|([,;:])(?=\s*[,;:.])")


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeMetadata:
    """What of a base may be told; nothing else ever is."""

    name: str
    id: str
    hint: str = ""
    keywords: tuple[str, ...] = ()


def safe_block(
    info: BaseInfo, *, titles: Collection[str] = (), texts: Iterable[str] = ()
) -> SafeMetadata:
    """The safe metadata of a base; `titles` and `texts` of its pages are kept out of the hint."""
    keywords = (clean(one, most=MAX_KEYWORD) for one in info.keywords)
    return SafeMetadata(
        name=clean(info.name, most=MAX_NAME) or clean(info.key, most=MAX_NAME),
        id=clean(info.key, most=MAX_NAME),
        hint=safe_hint(info.hint, titles=titles, texts=texts),
        keywords=tuple(one for one in keywords if one and not _says_a_number(one))[:MAX_KEYWORDS],
    )


def safe_hint(hint: str, *, titles: Collection[str] = (), texts: Iterable[str] = ()) -> str:
    """The hint without numbers, dates, headings and titles; "" where it repeats a text.

    A word that is a number at times, as "one", goes where a text has that number of the same thing.
    """
    pages = list(texts)
    secret = protected(pages)
    plain = unicodedata.normalize("NFKC", hint)
    scrubbed = plain
    for pattern in (_HEADING, _DATE, _NUMBER, _MANY):
        scrubbed = pattern.sub(" ", scrubbed)
    scrubbed = _without_numbers(scrubbed, secret)
    for title in sorted({*titles, *_headings(pages)}, key=len, reverse=True):
        scrubbed = _without(scrubbed, title)
    told = clean(_EMPTY.sub("", _GAP.sub("", scrubbed)), most=MAX_HINT)
    repeats = any(leak(one, secret) in ("words", "letters") for one in (plain, told))
    return "" if repeats else told.strip(" ,;:-")


def clean(text: str, *, most: int) -> str:
    """`text` as a name in a prompt: one line, without marks of templates, markup or code."""
    seen = "".join(
        one if unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Co", "Cn") else " "
        for one in text
    )
    return _BLANKS.sub(" ", _FORBIDDEN.sub("", seen)).strip()[:most].rstrip()


def _says_a_number(text: str) -> bool:
    """Whether a keyword names a number; "first mate" does not, and "barrel I" does."""
    found = places(folded(text))
    return bool(_MANY.search(text)) or any(one.is_sure or one.is_numbered for one in found)


def _without_numbers(text: str, secret: Protected) -> str:
    """The text without the words that say a number; "forty-seven" goes as one word."""
    kept, at = [], 0
    for place in places(text):
        if place.is_sure or place.is_numbered or _is_counted(place, secret):
            kept.append(text[at : place.start])
            at = place.end
    return " ".join([*kept, text[at:]])


def _is_counted(place: Place, secret: Protected) -> bool:
    return bool(place.counted & secret.numbers.counted)


def _headings(texts: Iterable[str]) -> Iterator[str]:
    """The headings of pages that have more than one word; one alone may stand anywhere."""
    for text in texts:
        for found in _HEADING_WORDS.finditer(text):
            heading = found[1] or found[2]
            if " " in heading:
                yield heading


def _without(text: str, title: str) -> str:
    """The text without a title as whole words, in any case."""
    words = title.split()
    if not words:
        return text
    pattern = r"\s+".join(map(re.escape, words))
    return re.sub(rf"(?<!\w){pattern}(?!\w)", " ", text, flags=re.IGNORECASE)
