"""Translate memory books of Agnai to Card V3.

A keyword matches a whole word in any letter case. In it `*` stands for any run of letters and `?`
for one letter; such a keyword becomes a regular expression with bounded cost. A keyword that is
only stars keeps the entry always active. `weight` is the order (the highest at the bottom) and
`priority` decides which entries survive the budget.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.engine.lorebook.entry import MAX_KEY
from evennia_ai.engine.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.engine.text.words import in_word
from evennia_ai.formats.lorebooks.entry_fields import V3_POSITIONS
from evennia_ai.formats.lorebooks.values import (
    USUAL_ORDER,
    Code,
    Flag,
    ForeignData,
    Identifier,
    Number,
    Object,
    Texts,
    TranslatedEntry,
    Translation,
    WholeCount,
    translate_entries,
    without_nulls,
)

NAMESPACE: Final = "agnai"
# `*` matches at most so many letters, so that the cost of a search is bounded.
LONGEST_RUN: Final = 30
_LETTER: Final = r"[\p{L}\p{M}\p{N}_]"
_WILDCARDS: Final = re.compile(r"[*?]")
_PIECES: Final = re.compile(r"\*+|\?|[^*?]+")
# Characters with a meaning in regular expressions, and the slash that delimits them.
_SYNTAX: Final = re.compile(r"[\\^$.|+()\[\]{}/]")


class _Entry(ForeignData):
    entry: Any = ""
    keywords: Texts | None = None
    name: str | None = None
    comment: str | None = None
    id: Identifier | None = None
    enabled: Flag | None = None
    priority: Number | None = None
    weight: Number | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    secondary_keys: Texts | None = None
    selective_logic: Code | None = None
    position: str | None = None
    probability: Number | None = None
    use_probability: Flag | None = None
    exclude_recursion: Flag | None = None


class _Book(ForeignData):
    name: str | None = None
    description: str | None = None
    scan_depth: WholeCount | None = None
    token_budget: WholeCount | None = None
    recursive_scanning: Flag | None = None


def is_agnai(data: Mapping[str, Any]) -> bool:
    """True if a file's JSON value is a memory book of Agnai."""
    return data.get("kind") == "memory"


def from_agnai(data: Mapping[str, Any]) -> Translation:
    """Translate the book to V3; the V3 reader refuses entries whose text is not text."""
    book, doubts = _Book.read(data)
    head = book.model_dump(exclude_none=True)
    kept = {name: value for name, value in data.items() if name != "entries"}
    return translate_entries(
        {**head, "extensions": {NAMESPACE: kept}}, data["entries"], _v3_entry, notices=doubts
    )


def _v3_entry(raw: Mapping[str, Any]) -> TranslatedEntry:
    entry, unread = _Entry.read(raw)
    words = [word for written in entry.keywords or () if (word := written.strip())]
    always = any(not word.strip("*") for word in words)
    words = [word for word in words if word.strip("*")]
    second = [word for written in entry.secondary_keys or () if (word := written.strip())]
    app = _app(entry)
    extensions: Object = {"match_whole_words": True, **app, NAMESPACE: raw}
    if any(map(_WILDCARDS.search, (*words, *second))):
        extensions["evennia_ai"] = {"patterns": "by_form"}
        words, second = [*map(_as_key, words)], [*map(_as_key, second)]
    members = {
        "id": entry.id,
        "name": entry.name,
        "comment": entry.name or entry.comment,
        "keys": words,
        "secondary_keys": second,
        "selective": bool(entry.selective and second),
        "content": entry.entry,
        "enabled": entry.enabled is not False,
        "insertion_order": USUAL_ORDER if entry.weight is None else entry.weight,
        "priority": entry.priority,
        "constant": bool(entry.constant) or always,
        "use_regex": False,
        "case_sensitive": False,
        "position": entry.position if entry.position in V3_POSITIONS else None,
        "extensions": extensions,
    }
    return without_nulls(members), unread


def _app(entry: _Entry) -> Object:
    """Return the entry's settings as members of SillyTavern's extension data."""
    app: Object = {
        "selectiveLogic": entry.selective_logic,
        "exclude_recursion": entry.exclude_recursion,
    }
    if entry.probability is not None:
        app |= {
            "probability": entry.probability,
            "useProbability": bool(entry.use_probability),
        }
    return without_nulls(app)


def _as_key(word: str) -> str:
    """Return a keyword as a key whose form decides whether it is a regular expression.

    It becomes one if it has wildcards, or if it would be mistaken for one.
    """
    has_meaning = _WILDCARDS.search(word) or is_delimited(word)
    if not has_meaning or len(word) > MAX_KEY:
        return word
    inside = word.strip("*")
    body = "".join(map(_as_pattern, _PIECES.findall(inside)))
    before = f"(?<!{_LETTER})" if word[0] != "*" and _has_edge(word[0]) else ""
    after = f"(?!{_LETTER})" if word[-1] != "*" and _has_edge(word[-1]) else ""
    return f"/{before}{body}{after}/iu"


def _as_pattern(piece: str) -> str:
    if piece[0] == "*":
        return f"{_LETTER}{{0,{LONGEST_RUN}}}"
    return _LETTER if piece == "?" else _SYNTAX.sub(r"\\\g<0>", piece)


def _has_edge(char: str) -> bool:
    """True if words can end at this character: false for scripts without spaces between words."""
    return char == "?" or in_word(char)
