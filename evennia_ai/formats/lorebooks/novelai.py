"""Translate lorebooks of NovelAI to Card V3.

Keys match whole words in any letter case, or are regular expressions if they look like `/this/`.
One number (`contextConfig.budgetPriority`) is both order and priority. NovelAI counts in characters
and trims texts; those settings are kept unread, with a notice.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.formats.lorebooks.values import (
    Flag,
    ForeignData,
    Identifier,
    Number,
    Object,
    Texts,
    TranslatedEntry,
    Translation,
    translate_entries,
    without_nulls,
)

NAMESPACE: Final = "novelai"
USUAL_PRIORITY: Final = 400
USUAL_RANGE: Final = 1000


class _Placing(ForeignData):
    budget_priority: Number | None = None
    prefix: str | None = None
    suffix: str | None = None


class _Entry(ForeignData):
    text: Any = ""
    keys: Texts | None = None
    display_name: str | None = None
    id: Identifier | None = None
    enabled: Flag | None = None
    force_activation: Flag | None = None
    search_range: Number | None = None
    key_relative: Flag | None = None
    category: str | None = None
    context_config: _Placing | None = None
    advanced_conditions: list[Any] | None = None


class _Category(ForeignData):
    id: str | None = None
    name: str | None = None
    enabled: Flag | None = None


class _Book(ForeignData):
    name: str | None = None
    categories: list[Any] | None = None


def is_novelai(data: Mapping[str, Any]) -> bool:
    """True if a file's JSON value is a lorebook of NovelAI."""
    return "lorebookVersion" in data and isinstance(data.get("entries"), list)


def from_novelai(data: Mapping[str, Any]) -> Translation:
    """Translate the book to V3; the V3 reader refuses entries whose text is not text."""
    book, doubts = _Book.read(data)
    off = _switched_off(book)
    head = without_nulls({"name": book.name})
    kept = {name: value for name, value in data.items() if name != "entries"}
    return translate_entries(
        {**head, "extensions": {NAMESPACE: kept}},
        data["entries"],
        partial(_v3_entry, off=off),
        notices=(
            *doubts,
            *(
                f"category '{one_line(name)[:60]}' is switched off, and its entries with it"
                for name in off.values()
            ),
        ),
    )


def _switched_off(book: _Book) -> dict[str, str]:
    """Return the names of the categories that are switched off, by id."""
    read = (_Category.read(raw)[0] for raw in book.categories or () if isinstance(raw, dict))
    return {
        category.id: category.name or category.id
        for category in read
        if category.id and category.enabled is False
    }


def _v3_entry(raw: Mapping[str, Any], *, off: Mapping[str, str]) -> TranslatedEntry:
    entry, unread = _Entry.read(raw)
    keys = entry.keys or []
    patterns = [is_delimited(key.strip()) for key in keys]
    placing = entry.context_config or _Placing()
    priority = USUAL_PRIORITY if placing.budget_priority is None else placing.budget_priority
    constant = bool(entry.force_activation)
    extensions: Object = {"match_whole_words": True, NAMESPACE: raw}
    if any(patterns):
        extensions["evennia_ai"] = {"patterns": "by_form"}
    members = {
        "id": entry.id,
        "name": entry.display_name,
        "comment": entry.display_name,
        "keys": keys,
        "content": entry.text,
        "enabled": entry.enabled is not False and entry.category not in off,
        "insertion_order": priority,
        "priority": priority,
        "constant": constant,
        "use_regex": not constant and bool(patterns) and all(patterns),  # V3: never both
        "case_sensitive": False,
        "extensions": extensions,
    }
    return without_nulls(members), (*unread, *_doubts(entry, placing))


def _doubts(entry: _Entry, placing: _Placing) -> Iterator[str]:
    """Yield a notice for each setting of NovelAI that has no effect here."""
    if entry.search_range not in (None, USUAL_RANGE):
        yield f"searchRange {entry.search_range} counts characters: here the rules' scan depth does"
    if entry.key_relative:
        yield "keyRelative is not done: the text is at its place, not next to its key"
    if entry.advanced_conditions:
        yield "advancedConditions are not read: only the keys decide"
    if (placing.prefix or "").strip() or (placing.suffix or "").strip():
        yield "prefix and suffix of contextConfig are not added: write them into the text"
    if any(" & " in key and not is_delimited(key.strip()) for key in entry.keys or ()):
        yield "a key with '&' is one phrase here: use secondary keys for words that go together"
