"""Builders of files that contain a card: pictures, archives, and broken ones of both."""

import base64
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable
from typing import Any

from tests.formats.cards.builders import card_data

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def as_json(card: Any) -> bytes:
    return json.dumps(card, ensure_ascii=False).encode()


def part(kind: bytes, data: bytes = b"", *, crc: int | None = None) -> bytes:
    """Return one chunk of a PNG file."""
    crc = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)


HEADER = part(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
PIXELS = part(b"IDAT", zlib.compress(b"\x00\x80"))
END = part(b"IEND")


def text(keyword: str, content: bytes, *, crc: int | None = None) -> bytes:
    """Return a tEXt chunk with `content` in base64."""
    return part(b"tEXt", keyword.encode("latin-1") + b"\0" + base64.b64encode(content), crc=crc)


def packed(keyword: str, content: bytes) -> bytes:
    """Return a zTXt chunk with `content` in base64."""
    value = zlib.compress(base64.b64encode(content))
    return part(b"zTXt", keyword.encode() + b"\0\0" + value)


def international(keyword: str, content: bytes, *, is_packed: bool) -> bytes:
    """Return an iTXt chunk with `content` in base64."""
    value = base64.b64encode(content)
    value = zlib.compress(value) if is_packed else value
    return part(b"iTXt", keyword.encode() + bytes([0, is_packed, 0]) + b"en\0\0" + value)


def picture(*chunks: bytes, behind: Iterable[bytes] = ()) -> bytes:
    """Return a PNG file with the given chunks before and after its pixels."""
    return b"".join((SIGNATURE, HEADER, *chunks, PIXELS, *behind, END))


def a_picture(card: Any = None, *chunks: bytes, keyword: str = "ccv3") -> bytes:
    """Return a PNG file with a card."""
    return picture(text(keyword, as_json(card or card_data())), *chunks)


def an_archive(card: Any = None, members: Any = (), *, before: bytes = b"") -> bytes:
    """Return a CHARX archive.

    `members` are names or ZipInfo objects with their bytes.
    """
    made = io.BytesIO()
    made.write(before)
    with zipfile.ZipFile(made, "a" if before else "w", zipfile.ZIP_DEFLATED) as archive:
        if card is not False:
            archive.writestr("card.json", as_json(card or card_data()))
        for name, content in dict(members).items() if isinstance(members, dict) else members:
            archive.writestr(name, content)
    return made.getvalue()


def card_in_chunk(content: bytes, keyword: str) -> Any:
    """Return the card in a tEXt chunk of a picture, found without this package's reader."""
    at = content.index(f"tEXt{keyword}\0".encode())
    length = int.from_bytes(content[at - 4 : at], "big")
    return json.loads(base64.b64decode(content[at + 5 + len(keyword) : at + 4 + length]))


def an_asset(uri: str, **fields: str) -> dict[str, str]:
    return {"type": "icon", "uri": uri, "name": "main", "ext": "png", **fields}


def a_member(**fields: Any) -> zipfile.ZipInfo:
    """Return the ZipInfo of an archive member with unusual values."""
    info = zipfile.ZipInfo(fields.pop("filename", "x.bin"))
    for name, value in fields.items():
        setattr(info, name, value)
    return info
