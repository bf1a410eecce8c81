"""What is different in two files of a card: which fields, and their texts by sentences."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.engine.text.columns import visible
from evennia_ai.engine.text.differences import diff_texts, render_value
from evennia_ai.formats.lorebooks.editing.comparing import LONGEST_COMPARED, book_differences

_EMPTY: Final[tuple[object, ...]] = ("", [], {}, None)


def changed_fields(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """The fields that differ in two files of a card: name, value before, value now.

    An empty one is none, and when a file was written is no difference.
    """
    before, after = _fields(old), _fields(new)
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        if name != "modification_date" and was != now and not (was in _EMPTY and now in _EMPTY):
            yield name, was, now


def _fields(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    data = raw.get("data")
    return data if "spec" in raw and isinstance(data, dict) else raw


def card_differences(older: str, newer: str) -> Iterator[str]:
    """What is different in two card files, given as their JSON, in lines of a unified diff.

    The book inside is told entry by entry, unless it is too long for that.
    """
    is_long = max(len(older), len(newer)) > LONGEST_COMPARED
    for field, was, now in changed_fields(json.loads(older), json.loads(newer)):
        of_book = None
        if field == "character_book" and not is_long:
            of_book = book_differences(was or None, now or None)
        if of_book is None:
            yield f"{visible(field)}:"
            yield from diff_texts(render_value(was), render_value(now))
        else:
            yield "its book:"
            yield from of_book
