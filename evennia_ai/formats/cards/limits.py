"""Limits on the size and depth of card files, and decoders that enforce them.

A file over a limit is refused as a whole, and the error names the limit. The defaults accept every
card that people share. With these defaults, the worst possible file takes less than two seconds and
200 MB.

All decoders are strict: none skips foreign characters in base64 or broken UTF-8.
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
_CONTAINERS: Final = (dict, list)
_DATA: Final = "data:"
# Matches a JSON string. An unclosed string matches to the end of the file; otherwise the search
# would start again at every later quote and take quadratic time.
_STRING: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


_AtLeast1 = Annotated[int, Field(ge=1), Must("at least 1")]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardLimits:
    """The limits for one card file; each is a maximum."""

    file_bytes: _AtLeast1 = 32 * MIB
    """The bytes of the whole file."""
    inflated_bytes: _AtLeast1 = 64 * MIB
    """The total bytes of all files inside the card's file, without the card's JSON."""
    ratio: _AtLeast1 = 200
    """The ratio of unpacked to packed bytes of an archive member; small members have no limit.

    The limit applies to members of `RATIO_FROM` bytes or more.
    """
    members: _AtLeast1 = 2_000
    """The number of files in an archive."""
    chunks: _AtLeast1 = 20_000
    """The number of chunks in a PNG picture."""
    text_bytes: _AtLeast1 = 8 * MIB
    """The bytes of the card's JSON."""
    string_characters: _AtLeast1 = 1_000_000
    """The characters of one JSON string.

    Strings with `data:` addresses may be longer, because they hold whole files.
    """
    objects: _AtLeast1 = 120_000
    """The number of objects in the JSON."""
    values: _AtLeast1 = 800_000
    """The number of values in the JSON."""
    nesting: Annotated[int, Field(ge=1, le=MAX_NESTING), Must(f"1 to {MAX_NESTING}")] = MAX_NESTING
    """The nesting depth of the JSON; the JSON parser allows no more than the default."""
    entries: Annotated[int, Field(ge=1, le=MAX_ENTRIES), Must(f"1 to {MAX_ENTRIES}")] = MAX_ENTRIES
    """The number of entries in the card's lorebook."""

    def __post_init__(self) -> None:
        if wrong := find_wrong_field(self):
            name, wanted = wrong
            shown = getattr(self, name)
            raise FormatError("card", f"limit {name} must be {wanted}, not {shown}")


DEFAULT_LIMITS: Final = CardLimits()


def refuse_over_limit(what: str, *, limit: str, most: int) -> NoReturn:
    """Raise FormatError because a value exceeds a limit.

    Args:
        what: the fact, such as "the file has 9 bytes".
        limit: the name of the limit.
        most: the value of the limit.
    """
    raise FormatError("card", f"card: {what}; the limit is {most} ({limit})")


def check_text(text: str, *, limits: CardLimits) -> None:
    """Raise FormatError if a card's JSON text has too many objects or values for parsing.

    Braces and commas inside strings do not count.
    """
    for limit, marks in (("values", ",:["), ("objects", "{")):
        most = getattr(limits, limit)
        # Count the marks in the whole text first, including those inside strings: this is fast, and
        # nearly every text has few enough. Only other texts need the slow count outside strings.
        if _count(text, marks) > most and _has_more_outside_strings(text, marks, most=most):
            refuse_over_limit(f"the card has too many {limit}", limit=limit, most=most)


def check_value(value: Any, *, limits: CardLimits) -> None:
    """Raise FormatError if a card's JSON is nested too deeply or its book has too many entries."""
    # at the maximum, the JSON parser has already checked the nesting
    if limits.nesting < MAX_NESTING:
        level = _containers((value,))
        for _ in range(limits.nesting):
            level = [
                inner
                for outer in level
                for inner in _containers(outer.values() if isinstance(outer, dict) else outer)
            ]
        if level:
            most = limits.nesting
            refuse_over_limit("the card is nested too deeply", limit="nesting", most=most)
    data = value.get("data", value) if isinstance(value, dict) else None
    book = data.get("character_book") if isinstance(data, dict) else None
    entries = book.get("entries") if isinstance(book, dict) else None
    if isinstance(entries, list | dict) and len(entries) > limits.entries:
        refuse_over_limit(
            f"the book has {len(entries)} entries", limit="entries", most=limits.entries
        )


def check_strings(value: Any, *, limits: CardLimits) -> None:
    """Raise FormatError if a string or member name in a card's JSON is too long."""
    most = limits.string_characters
    steps = _path_to_long_string(value, most)
    if steps is not None:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in steps)
        what = f"{one_line(path.lstrip('.'))} is too long"
        refuse_over_limit(what, limit="string_characters", most=most)


def _path_to_long_string(nested: Any, most: int) -> list[str | int] | None:
    """Return the names and indices that lead to the first string over the limit, if any."""
    for step, inner in nested.items() if isinstance(nested, dict) else enumerate(nested):
        if isinstance(step, str) and len(step) > most:
            return [step]
        if isinstance(inner, str):
            if len(inner) > most and inner[:5].lower() != _DATA:
                return [step]
        elif isinstance(inner, _CONTAINERS):
            rest = _path_to_long_string(inner, most)
            if rest is not None:
                return [step, *rest]
    return None


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, list | dict)]


def _has_more_outside_strings(text: str, marks: str, *, most: int) -> bool:
    """True if a JSON text has more than `most` of the characters `marks` outside its strings."""
    between = _text_between_strings(text)
    while most >= 0 and (parts := list(islice(between, 10_000))):
        most -= _count("".join(parts), marks)
    return most < 0


def _text_between_strings(text: str) -> Iterator[str]:
    start = 0
    for found in _STRING.finditer(text):
        yield text[start : found.start()]
        start = found.end()
    yield text[start:]


def _count(text: str, marks: str) -> int:
    return sum(text.count(mark) for mark in marks)


# Decoding percent escapes takes more than linear time, so a text with more characters than this is
# refused.
MOST_PERCENTS: Final = 200_000
_BLANKS: Final = b" \t\r\n\v\f"
_FOREIGN: Final = re.compile(rb"[^A-Za-z0-9+/=]")


def unpack_zlib(packed: bytes, *, most_bytes: int) -> bytes | None:
    """Unpack a zlib stream; return None if it unpacks to more than `most_bytes`.

    Raises:
        ValueError: the stream is broken or cut off.
    """
    stream = zlib.decompressobj()
    try:
        content = stream.decompress(packed, most_bytes + 1)
    except zlib.error as error:
        raise ValueError("is not zlib data") from error
    if len(content) > most_bytes:
        return None
    if not stream.eof:
        raise ValueError("is cut off")
    return content


def decode_base64(written: bytes) -> tuple[bytes, bool]:
    """Decode base64, skipping white space.

    Returns:
        The bytes, and True if the padding was missing.

    Raises:
        ValueError: the text is not base64; the message says why.
    """
    plain = written.translate(None, _BLANKS)
    missing = -len(plain) % 4 if not plain.endswith(b"=") else 0
    try:
        return binascii.a2b_base64(plain + b"=" * missing, strict_mode=True), missing > 0
    except binascii.Error as error:
        foreign = _FOREIGN.search(plain)
        what = f"a character it cannot have ({foreign[0]!r})" if foreign else "a wrong length"
        raise ValueError(f"is not base64: it has {what}") from error


def decode_percents(written: str) -> bytes:
    """Decode percent escapes such as `%41` to bytes.

    Raises:
        ValueError: the text is longer than `MOST_PERCENTS`.
    """
    if len(written) > MOST_PERCENTS:
        raise ValueError(f"it has more than {MOST_PERCENTS} characters without base64")
    return unquote_to_bytes(written)


def decode_utf8(content: bytes, *, where: str) -> str:
    """Decode UTF-8 and drop a byte order mark.

    Raises:
        FormatError: the bytes are not UTF-8; the message names the first wrong byte.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            "card", f"{where}: not UTF-8 text (byte {error.start}); save it as UTF-8 JSON"
        ) from error
