"""Compute the differences between two versions of a card's file, by field and as diff lines."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.differences import diff_texts, render_value
from evennia_ai.formats.lorebooks.editing.comparing import LONGEST_COMPARED, book_differences

_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)


def changed_fields(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, old value and new value of each field that differs between two cards.

    An empty field equals a missing one. `modification_date` is ignored.
    """
    before, after = _data_of(old), _data_of(new)
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        if name != "modification_date" and was != now and not (was in _EMPTY and now in _EMPTY):
            yield name, was, now


def _data_of(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    data = raw.get("data")
    return data if "spec" in raw and isinstance(data, dict) else raw


def card_differences(older: str, newer: str) -> Iterator[str]:
    """Yield the differences between two card files, given as JSON, as lines of a unified diff.

    The books inside the cards are compared entry by entry, unless the files are too long for that.
    """
    is_long = max(len(older), len(newer)) > LONGEST_COMPARED
    for field, was, now in changed_fields(json.loads(older), json.loads(newer)):
        by_entry = None
        are_books = all(isinstance(book or {}, dict) for book in (was, now))
        if field == "character_book" and are_books and not is_long:
            by_entry = book_differences(was or None, now or None)
        if by_entry is None:
            yield f"{escape_controls(field)}:"
            yield from diff_texts(render_value(was), render_value(now))
        else:
            yield "its book:"
            yield from by_entry
