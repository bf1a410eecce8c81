"""Safe metadata: all that an NPC is told of a restricted knowledge base before it searches it.

Four fields and no others: name, id, a hint and keywords, which its author wrote to be told. There
is no way from the summary, the topics or a page into them. Numbers, dates, headings and titles of
pages are taken out of the hint, and a hint that repeats a page is left out. Pure.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from evennia_ai.knowledge.leaks import leak, protected
from evennia_ai.knowledge.pages import BaseInfo

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
_NUMBER_WORD: Final = re.compile(
    r"\b(?:(?:twen|thir|for|fif|six|seven|eigh|nine)ty(?:-\w+)?|ten|eleven|twelve|\w+teen"
    r"|hundreds?|thousands?|millions?|dozens?|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"^[ \t]*(?:=+[^=\n]*=+|#+[^\n]*)[ \t]*$", re.MULTILINE)
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
    """The hint without numbers, dates, headings and titles; "" where it repeats a text."""
    plain = unicodedata.normalize("NFKC", hint)
    scrubbed = _HEADING.sub(" ", plain)
    for pattern in (_DATE, _NUMBER, _NUMBER_WORD):
        scrubbed = pattern.sub(" ", scrubbed)
    for title in sorted(titles, key=len, reverse=True):
        scrubbed = _without(scrubbed, title)
    told = clean(_EMPTY.sub("", _GAP.sub("", scrubbed)), most=MAX_HINT)
    secret = protected(texts)
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
    return bool(_NUMBER.search(text) or _NUMBER_WORD.search(text))


def _without(text: str, title: str) -> str:
    """The text without a title as whole words, in any case."""
    words = title.split()
    if not words:
        return text
    pattern = r"\s+".join(map(re.escape, words))
    return re.sub(rf"(?<!\w){pattern}(?!\w)", " ", text, flags=re.IGNORECASE)
