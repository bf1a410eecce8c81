"""How large and how deep a card's file may be.

A file over a limit is refused whole, and the refusal names the limit. The defaults hold every card
people share and keep the worst file under two seconds and 200 MB.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

from evennia_ai.lorebook.books import MAX_ENTRIES
from evennia_ai.lorebook.foreign import MAX_NESTING
from evennia_ai.prompt.errors import FormatError

MIB: Final = 1024 * 1024
RATIO_FROM: Final = MIB
_WIDEST: Final = {"nesting": MAX_NESTING, "entries": MAX_ENTRIES}
# A text of JSON; one that is not closed ends with the file, so that looking for it stays linear.
_TEXT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """The limits; each is at least 1, and what the JSON reader bounds itself cannot be wider.

    `inflated_bytes` is for everything unpacked from one file together, `ratio` (unpacked to packed)
    for each piece of `RATIO_FROM` bytes or more. `text_bytes`, `objects`, `values`, `nesting` and
    `entries` are about the card's own JSON.
    """

    file_bytes: int = 32 * MIB
    inflated_bytes: int = 64 * MIB
    ratio: int = 200
    members: int = 2_000
    chunks: int = 20_000
    text_bytes: int = 12 * MIB
    objects: int = 120_000
    values: int = 1_000_000
    nesting: int = MAX_NESTING
    entries: int = MAX_ENTRIES

    def __post_init__(self) -> None:
        for field in fields(self):
            value, widest = getattr(self, field.name), _WIDEST.get(field.name)
            if value < 1 or (widest is not None and value > widest):
                wanted = "at least 1" if widest is None else f"1 to {widest}"
                raise FormatError("card", f"limit {field.name} must be {wanted}, not {value}")


DEFAULT_LIMITS: Final = CardLimits()


def refuse(what: str, *, limit: str, most: int) -> NoReturn:
    """FormatError: `what` ("the file has 9 bytes") is more than the limit of this name allows."""
    raise FormatError("card", f"card: {what}; the limit is {most} ({limit})")


def check_text(text: str, *, limits: CardLimits) -> None:
    """FormatError where a JSON text holds more objects or values than allowed, before it is read.

    Texts may hold as many braces and commas as they like.
    """
    for limit, marks in (("objects", "{"), ("values", ",:[")):
        most = getattr(limits, limit)
        if _count(text, marks) > most and (there := _count(_TEXT.sub("", text), marks)) > most:
            refuse(f"has {there} {limit}", limit=limit, most=most)


def check_value(value: Any, *, limits: CardLimits) -> None:
    """FormatError where a card's JSON value nests too deep or its book has too many entries."""
    if limits.nesting < MAX_NESTING:
        _check_nesting(value, limits=limits)
    data = value.get("data", value) if isinstance(value, dict) else None
    book = data.get("character_book") if isinstance(data, dict) else None
    entries = book.get("entries") if isinstance(book, dict) else None
    if isinstance(entries, list | dict) and len(entries) > limits.entries:
        refuse(f"its book has {len(entries)} entries", limit="entries", most=limits.entries)


def _check_nesting(value: Any, *, limits: CardLimits) -> None:
    """Lists and objects stand at most `nesting` deep, as the JSON reader counts."""
    level = _nested((value,))
    for _ in range(limits.nesting):
        level = [inner for outer in level for inner in _nested(_inside(outer))]
    if level:
        refuse(f"is nested more than {limits.nesting} deep", limit="nesting", most=limits.nesting)


def _nested(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, list | dict)]


def _inside(nested: Any) -> Iterable[Any]:
    return nested.values() if isinstance(nested, dict) else nested


def _count(text: str, marks: str) -> int:
    return sum(text.count(mark) for mark in marks)
