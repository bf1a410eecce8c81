"""How large and how deep a card's file may be.

A file over a limit is refused whole, and the refusal names the limit. The defaults hold every card
people share and keep the worst file under two seconds and 200 MB.

Packed bytes become plain bytes and text strictly and never beyond a limit: Python's own base64
drops foreign characters and its UTF-8 has a lenient mode; neither is used.
"""

import binascii
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Final, NoReturn
from urllib.parse import unquote_to_bytes

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import MAX_ENTRIES, MAX_NESTING, one_line
from evennia_ai.engine.foreign.fields import Must, find_wrong_field

MIB: Final = 1024 * 1024
RATIO_FROM: Final = MIB
_NESTED: Final = (dict, list)
_DATA: Final = "data:"
# A text of JSON; one that is not closed ends with the file, so that looking for it stays linear.
_TEXT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


_AtLeast1 = Annotated[int, Field(ge=1), Must("at least 1")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """The limits; each is at least 1, and what the JSON reader bounds itself cannot be wider.

    `inflated_bytes` is for everything taken out of one file beside the card, `ratio` (unpacked to
    packed) for each piece of `RATIO_FROM` bytes or more. `text_bytes`, `string_characters`,
    `objects`, `values`, `nesting` and `entries` are about the card's own JSON; data addresses,
    which hold whole files, may be longer than one string.
    """

    file_bytes: _AtLeast1 = 32 * MIB
    inflated_bytes: _AtLeast1 = 64 * MIB
    ratio: _AtLeast1 = 200
    members: _AtLeast1 = 2_000
    chunks: _AtLeast1 = 20_000
    text_bytes: _AtLeast1 = 8 * MIB
    string_characters: _AtLeast1 = 1_000_000
    objects: _AtLeast1 = 120_000
    values: _AtLeast1 = 800_000
    nesting: Annotated[int, Field(ge=1, le=MAX_NESTING), Must(f"1 to {MAX_NESTING}")] = MAX_NESTING
    entries: Annotated[int, Field(ge=1, le=MAX_ENTRIES), Must(f"1 to {MAX_ENTRIES}")] = MAX_ENTRIES

    def __post_init__(self) -> None:
        if wrong := find_wrong_field(self):
            name, wanted = wrong
            shown = getattr(self, name)
            raise FormatError("card", f"limit {name} must be {wanted}, not {shown}")


DEFAULT_LIMITS: Final = CardLimits()


def refuse(what: str, *, limit: str, most: int) -> NoReturn:
    """FormatError: `what` ("the file has 9 bytes") is more than the limit of this name allows."""
    raise FormatError("card", f"card: {what}; the limit is {most} ({limit})")


def check_text(text: str, *, limits: CardLimits) -> None:
    """FormatError where a JSON text holds more objects or values than allowed, before it is read.

    Texts may hold as many braces and commas as they like.
    """
    for limit, marks in (("values", ",:["), ("objects", "{")):
        most = getattr(limits, limit)
        if _count(text, marks) > most and _has_more(text, marks, most=most):
            refuse(f"has more {limit}", limit=limit, most=most)


def check_value(value: Any, *, limits: CardLimits) -> None:
    """FormatError where a card's JSON value nests too deep or its book has too many entries."""
    if limits.nesting < MAX_NESTING:
        _check_nesting(value, limits=limits)
    data = value.get("data", value) if isinstance(value, dict) else None
    book = data.get("character_book") if isinstance(data, dict) else None
    entries = book.get("entries") if isinstance(book, dict) else None
    if isinstance(entries, list | dict) and len(entries) > limits.entries:
        refuse(f"its book has {len(entries)} entries", limit="entries", most=limits.entries)


def check_strings(value: Any, *, limits: CardLimits) -> None:
    """FormatError where a string or a member's name in a JSON value is too long; it says where."""
    most = limits.string_characters
    way = _way_to_long(value, most)
    if way is not None:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in way)
        what = f"{one_line(path.lstrip('.'))} is too long"
        refuse(what, limit="string_characters", most=most)


def _way_to_long(nested: Any, most: int) -> list[str | int] | None:
    """The names and positions that lead to a string that is too long, None where there is none."""
    for step, inner in nested.items() if isinstance(nested, dict) else enumerate(nested):
        if isinstance(step, str) and len(step) > most:
            return [step]
        if isinstance(inner, str):
            if len(inner) > most and inner[:5].lower() != _DATA:
                return [step]
        elif isinstance(inner, _NESTED) and (rest := _way_to_long(inner, most)) is not None:
            return [step, *rest]
    return None


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


def _has_more(text: str, marks: str, *, most: int) -> bool:
    """Whether more than `most` of these marks stand outside the texts of a JSON text."""
    outside = _outside(text)
    while most >= 0 and (pieces := list(islice(outside, 10_000))):
        most -= _count("".join(pieces), marks)
    return most < 0


def _outside(text: str) -> Iterator[str]:
    """What stands between the texts of a JSON text."""
    start = 0
    for found in _TEXT.finditer(text):
        yield text[start : found.start()]
        start = found.end()
    yield text[start:]


def _count(text: str, marks: str) -> int:
    return sum(text.count(mark) for mark in marks)


# Longer texts cost far more than they are long.
MOST_PERCENTS: Final = 200_000
_BLANKS: Final = b" \t\r\n\v\f"
_FOREIGN: Final = re.compile(rb"[^A-Za-z0-9+/=]")


def unpacked(packed: bytes, *, most_bytes: int) -> bytes | None:
    """What a zlib stream holds, None where that is more than `most_bytes`; ValueError if broken."""
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, most_bytes + 1)
    except zlib.error as error:
        raise ValueError("is no zlib data") from error
    if len(content) > most_bytes:
        return None
    if not stream.eof:
        raise ValueError("is cut off")
    return content


def from_base64(written: bytes) -> tuple[bytes, bool]:
    """The bytes that base64 stands for, and whether its padding was missing; blanks do not count.

    ValueError says what is wrong.
    """
    plain = written.translate(None, _BLANKS)
    missing = -len(plain) % 4 if not plain.endswith(b"=") else 0
    try:
        return binascii.a2b_base64(plain + b"=" * missing, strict_mode=True), missing > 0
    except binascii.Error as error:
        foreign = _FOREIGN.search(plain)
        what = f"a character it cannot have ({foreign[0]!r})" if foreign else "a wrong length"
        raise ValueError(f"is no base64: it has {what}") from error


def from_percents(written: str) -> bytes:
    """The bytes that a text with `%41` and the like stands for; ValueError where it is too long."""
    if len(written) > MOST_PERCENTS:
        raise ValueError(f"it has more than {MOST_PERCENTS} characters without base64")
    return unquote_to_bytes(written)


def as_text(content: bytes, *, where: str) -> str:
    """`content` as UTF-8, without a byte order mark; FormatError names the byte that is wrong."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            "card", f"{where}: no UTF-8 text (byte {error.start}); save it as UTF-8 JSON"
        ) from error
