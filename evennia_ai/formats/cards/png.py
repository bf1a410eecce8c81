"""Cards in PNG and APNG pictures: find the chunk with the card, and write a new one.

Card V3, "PNG/APNG": the keyword `ccv3` wins over `chara`. Each chunk is a tEXt chunk with base64 of
UTF-8 JSON. The reader also accepts other variants in use: zTXt and iTXt, keywords in another letter
case, chunks after the pixels, and assets in chunks. The writer writes only tEXt and no assets.

The reader checks every length before it uses it. It never decodes pixels and ignores everything
after IEND.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.limits import (
    CardLimits,
    decode_base64,
    decode_utf8,
    refuse_over_limit,
    unpack_zlib,
)

SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
TEXT_KINDS: Final = frozenset({b"tEXt", b"zTXt", b"iTXt"})
_FRAME: Final = 12  # the bytes of the length, the type and the checksum around the data
_LONGEST: Final = 2**31 - 1
_END: Final = b"IEND"


@dataclass(frozen=True, slots=True, kw_only=True)
class PngChunk:
    """The position of a chunk in a PNG file; the chunk's data is not copied."""

    kind: bytes
    start: int
    """The offset at which the chunk's data begins."""
    length: int
    """The number of bytes of the chunk's data."""
    crc: int
    """The checksum that the file contains, which may be wrong."""

    def data(self, content: bytes) -> bytes:
        """Return the data of the chunk, given the bytes of the whole file."""
        return content[self.start : self.start + self.length]

    def whole(self, content: bytes) -> bytes:
        """Return the chunk with its length, type and checksum, given the bytes of its file."""
        return content[self.start - 8 : self.start + self.length + 4]

    def is_sound(self, content: bytes) -> bool:
        """True if the checksum of the chunk is right."""
        start = (
            self.start - 4
        )  # the checksum includes the chunk's type, which is the four bytes before its data
        return zlib.crc32(memoryview(content)[start : start + 4 + self.length]) == self.crc


def parse_chunks(content: bytes, *, limits: CardLimits) -> tuple[tuple[PngChunk, ...], str]:
    """Find the chunks of a PNG file, up to IEND.

    A file that is cut off within its pixels can still be read, because the card usually comes
    first.

    Returns:
        The complete chunks, and a description of where the file is cut off, "" for a complete file.

    Raises:
        FormatError: this is not a PNG file, it has too many chunks, a chunk has a forbidden length,
            or a text chunk is cut off.
    """
    if not content.startswith(SIGNATURE):
        raise FormatError("card", "card: not a PNG picture")
    found: list[PngChunk] = []
    at = len(SIGNATURE)
    while at + _FRAME <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        if kind == _END:
            return tuple(found), ""
        if len(found) == limits.chunks:
            refuse_over_limit("the picture has too many chunks", limit="chunks", most=limits.chunks)
        if length > _LONGEST:
            raise FormatError("card", f"card: the chunk at byte {at} has a length that PNG forbids")
        start = at + 8
        if length > len(content) - start - 4:
            if kind in TEXT_KINDS:
                raise FormatError(
                    "card", f"card: cut off in the text chunk at byte {at}; download it again"
                )
            return tuple(found), f"the picture is cut off in a chunk of {length} bytes"
        crc = int.from_bytes(content[start + length : start + length + 4], "big")
        found.append(PngChunk(kind=kind, start=start, length=length, crc=crc))
        at = start + length + 4
    return tuple(found), "the picture is cut off: its last chunk (IEND) is missing"


def encode_chunk(kind: bytes, data: bytes) -> bytes:
    """Return the bytes of a PNG chunk with this type and data."""
    crc = zlib.crc32(data, zlib.crc32(kind))
    return b"".join((struct.pack(">I4s", len(data), kind), data, struct.pack(">I", crc)))


def build_picture(chunks: Iterable[bytes]) -> bytes:
    """Build a PNG file from encoded chunks; IEND is added."""
    return b"".join((SIGNATURE, *chunks, encode_chunk(_END, b"")))


Keyword = Literal["ccv3", "chara"]
# The keywords of text chunks with a card, in order of preference.
KEYWORDS: Final[tuple[Keyword, ...]] = ("ccv3", "chara")
# Prefixes of the keywords of asset chunks. Programs write them with or without the colon. The
# prefix with the colon is tried first. Otherwise the colon would become a part of the asset's path.
ASSET_PREFIXES: Final = ("chara-ext-asset_:", "chara-ext-asset_")
# PNG allows keywords of 79 bytes, but programs write longer ones for asset chunks
_KEYWORD_BYTES: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CardInPicture:
    """The JSON text of a card in a PNG file."""

    text: str
    keyword: Keyword
    is_animated: bool
    assets: dict[str, PngChunk]
    """The undecoded asset chunks by path; if several have one path, the first."""
    notices: tuple[str, ...]


def card_in_picture(content: bytes, *, limits: CardLimits) -> CardInPicture:
    """Return the card in a PNG file.

    Raises:
        FormatError: the file has no card, or one that is broken or over a limit.
    """
    chunks, cut = parse_chunks(content, limits=limits)
    keyword, found = _choose_chunk(content, chunks, cut)
    assets: dict[str, PngChunk] = {}
    for each in chunks:
        if path := _asset_path(content, each):
            assets.setdefault(path, each)
    notices = [cut] if cut else []
    written = _keyword(content, found)
    if keyword == "ccv3" and written != keyword:
        notices.append(f"the card's chunk is called {written!a}, not ccv3")
    if found.kind != b"tEXt":
        notices.append(f"the card's chunk is {found.kind.decode()}; the standard requires tEXt")
    if not found.is_sound(content):
        raise FormatError(
            "card",
            f"card: the checksum (CRC) of the chunk {keyword} is wrong; download the file again",
        )
    card = _decode_card(_unpack_text(found, content, keyword, limits=limits), keyword, notices)
    if len(card) > limits.text_bytes:
        refuse_over_limit(
            f"the card has {len(card)} bytes", limit="text_bytes", most=limits.text_bytes
        )
    return CardInPicture(
        text=decode_utf8(card, where=f"card: the chunk {keyword}"),
        keyword=keyword,
        is_animated=any(each.kind == b"acTL" for each in chunks),
        assets=assets,
        notices=tuple(notices),
    )


def replace_cards(
    picture: bytes,
    texts: Sequence[tuple[Keyword, bytes]],
    *,
    keep_assets: bool,
    limits: CardLimits,
) -> bytes:
    """Return a PNG file with its cards replaced by those in `texts`; other chunks are kept.

    Asset chunks belong to the replaced card, so they are removed unless `keep_assets` is True.
    """
    chunks, _ = parse_chunks(picture, limits=limits)
    kept = [
        each.whole(picture)
        for each in chunks
        if not (_is_card(picture, each) or (not keep_assets and _asset_path(picture, each)))
    ]
    cards = (
        encode_chunk(b"tEXt", keyword.encode() + b"\0" + base64.b64encode(text))
        for keyword, text in texts
    )
    # IHDR must be the first chunk of a PNG file
    return build_picture((*kept[:1], *cards, *kept[1:]))


class EmbeddedAssets:
    """A callable that finds files in the asset chunks of a PNG file and decodes each only once.

    A card may refer to the same file thousands of times.
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
        """Return the file at a path, None if there is none.

        Raises:
            ValueError: the file cannot be decoded; the message says why.
            FormatError: the files decoded so far are over the limit.
        """
        if path not in self._chunks:
            return None
        if path in self._wrong:
            raise ValueError(self._wrong[path])
        if path not in self._read:
            try:
                self._read[path] = self._decode(self._chunks[path])
            except ValueError as error:
                self._wrong[path] = str(error)
                raise
        return self._read[path]

    def _decode(self, found: PngChunk) -> bytes:
        if not found.is_sound(self._content):
            raise ValueError("its checksum (CRC) is wrong")
        content = decode_base64(found.data(self._content).partition(b"\0")[2])[0]
        self._left -= len(content)
        if self._left < 0:
            what, most = "the assets of the picture have more bytes", self._limits.inflated_bytes
            refuse_over_limit(what, limit="inflated_bytes", most=most)
        return content


def _choose_chunk(content: bytes, chunks: Iterable[PngChunk], cut: str) -> tuple[Keyword, PngChunk]:
    cards = [each for each in chunks if _is_card(content, each)]
    for keyword in KEYWORDS:
        found = [each for each in cards if _keyword(content, each).lower() == keyword]
        if len(found) > 1:
            raise FormatError(
                "card", f"card: the picture has {len(found)} chunks {keyword}; only one is allowed"
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
    """Return the keyword of a PNG text chunk, "" if it has none."""
    head = content[found.start : found.start + min(found.length, _KEYWORD_BYTES)]
    keyword, end, _ = head.partition(b"\0")
    return keyword.decode("latin-1") if end else ""


def _unpack_text(found: PngChunk, content: bytes, keyword: Keyword, *, limits: CardLimits) -> bytes:
    """Return the base64 text in a PNG text chunk, unpacked if it is compressed."""
    most = 2 * limits.text_bytes  # base64 needs four bytes for three, and white space may be added
    value, is_packed = found.data(content).partition(b"\0")[2], False
    if found.kind == b"zTXt":  # one byte, the compression method, precedes the text of a zTXt chunk
        value, is_packed = value[1:], True
    # An iTXt chunk continues with compression flag and method, language, translated keyword, text.
    elif found.kind == b"iTXt":
        value, is_packed = value[2:].partition(b"\0")[2].partition(b"\0")[2], value[:1] == b"\x01"
    try:
        read = unpack_zlib(value, most_bytes=most) if is_packed else value
    except ValueError as error:
        raise FormatError("card", f"card: the chunk {keyword} {error}") from error
    if read is None or len(read) > most:
        refuse_over_limit(
            f"the chunk {keyword} is too large", limit="text_bytes", most=limits.text_bytes
        )
    return read


def _decode_card(value: bytes, keyword: Keyword, notices: list[str]) -> bytes:
    try:
        content, was_short = decode_base64(value)
    except ValueError as error:
        raise FormatError("card", f"card: the chunk {keyword} {error}") from error
    if was_short:
        notices.append("the card's base64 has no padding: it was added")
    return content


def _asset_path(content: bytes, found: PngChunk) -> str:
    """Return the path of the asset in a PNG chunk, "" for a chunk without an asset."""
    if found.kind != b"tEXt":
        return ""
    keyword = _keyword(content, found)
    prefix = next((each for each in ASSET_PREFIXES if keyword.startswith(each)), None)
    return "" if prefix is None else keyword.removeprefix(prefix)
