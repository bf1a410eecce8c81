"""Packed bytes -> plain bytes -> text, strictly and never beyond a limit.

Python's own base64 drops foreign characters and its UTF-8 has a lenient mode; neither is used.
"""

import binascii
import re
import zlib
from typing import Final
from urllib.parse import unquote_to_bytes

from evennia_ai.errors import FormatError

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
