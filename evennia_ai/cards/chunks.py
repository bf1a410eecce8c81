"""The chunks of a PNG file: read with every length checked first, and written.

Only the structure counts: pixels are never decoded, what comes after IEND is no part of the file.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evennia_ai.cards.limits import CardLimits, refuse
from evennia_ai.errors import FormatError

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
TEXT_KINDS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_FRAME: Final = 12  # length, type and checksum around the data
_LONGEST: Final = 2**31 - 1
_END: Final = b"IEND"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One chunk: `start` is where its data stand in the file, `crc` the checksum written there."""

    kind: bytes
    start: int
    length: int
    crc: int

    def data(self, content: bytes) -> bytes:
        """Its data, out of the file's bytes."""
        return content[self.start : self.start + self.length]

    def whole(self, content: bytes) -> bytes:
        """All of it with its frame, byte for byte."""
        return content[self.start - 8 : self.start + self.length + 4]

    def is_sound(self, content: bytes) -> bool:
        """Whether the checksum is right."""
        start = self.start - 4
        return zlib.crc32(memoryview(content)[start : start + 4 + self.length]) == self.crc


def chunks_in(content: bytes, *, limits: CardLimits) -> tuple[tuple[Chunk, ...], str]:
    """The whole chunks before IEND, and how the file is cut off, "" where it is not.

    FormatError: no PNG file, more chunks than allowed, a length PNG does not know, or a chunk of
    text that is cut off.
    """
    if not content.startswith(SIGNATURE):
        raise FormatError("card", "card: no PNG picture")
    found: list[Chunk] = []
    at = len(SIGNATURE)
    while at + _FRAME <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == _END:
            return tuple(found), ""
        if len(found) == limits.chunks:
            refuse("the picture has more chunks", limit="chunks", most=limits.chunks)
        start = at + 8
        if not _fits(kind, length, left=len(content) - start - 4, at=at):
            return tuple(found), f"the picture is cut off in a chunk of {length} bytes"
        crc = int.from_bytes(content[start + length : start + length + 4], "big")
        found.append(Chunk(kind=kind, start=start, length=length, crc=crc))
        at = start + length + 4
    return tuple(found), "the picture is cut off: its last chunk (IEND) is missing"


def _fits(kind: bytes, length: int, *, left: int, at: int) -> bool:
    """Whether a chunk is all there; FormatError where the file cannot be read for it."""
    if length > _LONGEST:
        raise FormatError("card", f"card: the chunk at byte {at} has a length that PNG forbids")
    if length > left and kind in TEXT_KINDS:
        raise FormatError("card", f"card: cut off in the text chunk at byte {at}; get it again")
    return length <= left


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk with its frame."""
    crc = zlib.crc32(data, zlib.crc32(kind))
    return b"".join((struct.pack(">I4s", len(data), kind), data, struct.pack(">I", crc)))


def picture_of(chunks: Iterable[bytes]) -> bytes:
    """A PNG file of these whole chunks; IEND is put to their end."""
    return b"".join((SIGNATURE, *chunks, chunk(_END, b"")))


_SIDE: Final = 16
# The pixels of `blank_picture`, by which it is known again whatever stands beside them.
BLANK_PIXELS: Final = chunk(b"IDAT", zlib.compress((b"\x00" + b"\x80" * _SIDE) * _SIDE, 9))


def blank_picture() -> bytes:
    """The picture of a card that has none: a small grey square."""
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 0, 0, 0, 0)
    return picture_of((chunk(b"IHDR", header), BLANK_PIXELS))
