"""Cards in PNG and APNG pictures: which text chunk counts, and the picture with a new one.

Card V3, "PNG/APNG": `ccv3` wins over `chara`, each is base64 of UTF-8 JSON in a tEXt chunk. Read as
well, because they are in use: zTXt and iTXt, other letter case, chunks behind the pixels, and
assets in chunks of their own. Only tEXt is written, and no asset chunks.

Chunks are read with every length checked first. Only the structure counts: pixels are never
decoded, what comes after IEND is no part of the file.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.limits import CardLimits, as_text, from_base64, refuse, unpacked

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
TEXT_KINDS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_FRAME: Final = 12  # length, type and checksum around the data
_LONGEST: Final = 2**31 - 1
_END: Final = b"IEND"


@dataclass(frozen=True, slots=True, kw_only=True)
class PngChunk:
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


def chunks_in(content: bytes, *, limits: CardLimits) -> tuple[tuple[PngChunk, ...], str]:
    """The whole chunks before IEND, and how the file is cut off, "" where it is not.

    FormatError: no PNG file, more chunks than allowed, a length PNG does not know, or a chunk of
    text that is cut off.
    """
    if not content.startswith(SIGNATURE):
        raise FormatError("card", "card: no PNG picture")
    found: list[PngChunk] = []
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
        found.append(PngChunk(kind=kind, start=start, length=length, crc=crc))
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


Keyword = Literal["ccv3", "chara"]
KEYWORDS: Final[tuple[Keyword, ...]] = ("ccv3", "chara")  # the first wins
# Both spellings are in use; the longer one comes first.
ASSET_PREFIXES: Final = ("chara-ext-asset_:", "chara-ext-asset_")
_KEYWORD_BYTES: Final = 200  # PNG allows 79; asset chunks are written with longer ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Pictured:
    """The card's JSON text in a picture. `assets` are the asset chunks by path, not yet decoded."""

    text: str
    keyword: Keyword
    is_animated: bool
    assets: dict[str, PngChunk]
    notices: tuple[str, ...]


def card_in_picture(content: bytes, *, limits: CardLimits) -> Pictured:
    """The card in a PNG file; FormatError where there is none, or none that can be trusted."""
    chunks, cut = chunks_in(content, limits=limits)
    keyword, found = _chosen(content, chunks, cut)
    notices = [cut] if cut else []
    written = _keyword(content, found)
    if keyword == "ccv3" and written != keyword:
        notices.append(f"the card's chunk is called {written!a}, not ccv3")
    if found.kind != b"tEXt":
        notices.append(f"the card's chunk is {found.kind.decode()}; the standard wants tEXt")
    if not found.is_sound(content):
        raise FormatError(
            "card", f"card: the checksum (CRC) of the chunk {keyword} is wrong; get the file again"
        )
    return Pictured(
        text=_text(_value(found, content, keyword, limits=limits), keyword, notices, limits=limits),
        keyword=keyword,
        is_animated=any(each.kind == b"acTL" for each in chunks),
        assets=_assets(content, chunks),
        notices=tuple(notices),
    )


def with_cards(
    picture: bytes,
    texts: Sequence[tuple[Keyword, bytes]],
    *,
    keep_assets: bool,
    limits: CardLimits,
) -> bytes:
    """The picture with these card texts as its only ones; its other chunks stay as they are.

    Without `keep_assets` asset chunks go too: they belong to the card that goes.
    """
    chunks, _ = chunks_in(picture, limits=limits)
    kept = [
        each.whole(picture)
        for each in chunks
        if not (_is_card(picture, each) or (not keep_assets and _asset_path(picture, each)))
    ]
    cards = (
        chunk(b"tEXt", keyword.encode() + b"\0" + base64.b64encode(text)) for keyword, text in texts
    )
    return picture_of((*kept[:1], *cards, *kept[1:]))


class AssetsBeside:
    """The files that asset chunks hold, by path: each decoded once, however often it is named.

    FormatError where all of them together are over the limit.
    """

    def __init__(
        self, chunks: Mapping[str, PngChunk], content: bytes, *, limits: CardLimits
    ) -> None:
        self._chunks = chunks
        self._content = content
        self._limits = limits
        self._left = limits.inflated_bytes
        self._read: dict[str, bytes] = {}
        self._wrong: dict[str, str] = {}

    def __call__(self, path: str) -> bytes | None:
        """The file at a path, None where there is none; ValueError says why it cannot be had."""
        if path not in self._chunks:
            return None
        if path in self._wrong:
            raise ValueError(self._wrong[path])
        if path not in self._read:
            try:
                self._read[path] = self._decoded(self._chunks[path])
            except ValueError as error:
                self._wrong[path] = str(error)
                raise
        return self._read[path]

    def _decoded(self, found: PngChunk) -> bytes:
        if not found.is_sound(self._content):
            raise ValueError("its checksum (CRC) is wrong")
        content = from_base64(found.data(self._content).partition(b"\0")[2])[0]
        self._left -= len(content)
        if self._left < 0:
            what, most = "the assets of the picture have more bytes", self._limits.inflated_bytes
            refuse(what, limit="inflated_bytes", most=most)
        return content


def _chosen(content: bytes, chunks: Iterable[PngChunk], cut: str) -> tuple[Keyword, PngChunk]:
    cards = [each for each in chunks if _is_card(content, each)]
    for keyword in KEYWORDS:
        found = [each for each in cards if _keyword(content, each).lower() == keyword]
        if len(found) > 1:
            raise FormatError(
                "card", f"card: the picture has {len(found)} chunks {keyword}; only one may count"
            )
        if found:
            return keyword, found[0]
    raise FormatError(
        "card",
        "card: no card in the picture; it would be in a text chunk called"
        f" {' or '.join(KEYWORDS)}{f' ({cut})' if cut else ''}",
    )


def _is_card(content: bytes, found: PngChunk) -> bool:
    return found.kind in TEXT_KINDS and _keyword(content, found).lower() in KEYWORDS


def _keyword(content: bytes, found: PngChunk) -> str:
    """The keyword of a chunk of text, "" where it has none."""
    head = content[found.start : found.start + min(found.length, _KEYWORD_BYTES)]
    keyword, end, _ = head.partition(b"\0")
    return keyword.decode("latin-1") if end else ""


def _value(found: PngChunk, content: bytes, keyword: Keyword, *, limits: CardLimits) -> bytes:
    """The base64 text in a chunk of text, unpacked."""
    most = 2 * limits.text_bytes  # base64 makes four bytes of three
    value, is_packed = _payload(found.kind, found.data(content).partition(b"\0")[2])
    try:
        read = unpacked(value, most_bytes=most) if is_packed else value
    except ValueError as error:
        raise FormatError("card", f"card: the chunk {keyword} {error}") from error
    if read is None or len(read) > most:
        refuse(f"the chunk {keyword} is too large", limit="text_bytes", most=limits.text_bytes)
    return read


def _payload(kind: bytes, rest: bytes) -> tuple[bytes, bool]:
    """The value behind the keyword of a chunk of text, and whether it is packed."""
    if kind == b"zTXt":
        return rest[1:], True
    if kind == b"iTXt":  # packed or not, method, language, the keyword in that language
        return rest[2:].partition(b"\0")[2].partition(b"\0")[2], rest[:1] == b"\x01"
    return rest, False


def _text(value: bytes, keyword: Keyword, notices: list[str], *, limits: CardLimits) -> str:
    try:
        content, was_short = from_base64(value)
    except ValueError as error:
        raise FormatError("card", f"card: the chunk {keyword} {error}") from error
    if was_short:
        notices.append("the card's base64 has no padding: it was added")
    if len(content) > limits.text_bytes:
        refuse(f"the card has {len(content)} bytes", limit="text_bytes", most=limits.text_bytes)
    return as_text(content, where=f"card: the chunk {keyword}")


def _assets(content: bytes, chunks: Iterable[PngChunk]) -> dict[str, PngChunk]:
    """The asset chunks by path; of several with one path the first."""
    found: dict[str, PngChunk] = {}
    for each in chunks:
        if path := _asset_path(content, each):
            found.setdefault(path, each)
    return found


def _asset_path(content: bytes, found: PngChunk) -> str:
    if found.kind != b"tEXt":
        return ""
    keyword = _keyword(content, found)
    prefix = next((each for each in ASSET_PREFIXES if keyword.startswith(each)), None)
    return "" if prefix is None else keyword.removeprefix(prefix)
