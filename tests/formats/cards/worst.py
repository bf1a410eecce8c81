"""The card files that cost most within the limits, and files slightly over each limit."""

import json
import random
import struct
import zlib
from collections.abc import Callable
from typing import Any

from tests.formats.cards.builders import card_data, lore
from tests.formats.cards.carriers import (
    HEADER,
    SIGNATURE,
    an_archive,
    an_asset,
    as_json,
    packed,
    part,
    picture,
    text,
)

MIB = 1024 * 1024
# with one such character, Python stores every character of a text in four bytes
DRAGON = "\U0001f409"
JPEG = b"\xff\xd8\xff"


def holding(value: str) -> bytes:
    """Return a card with the given JSON text inside its extensions."""
    return as_json(card_data(extensions={"here": 0})).replace(b'"here": 0', value.encode())


def listed(item: str, times: int) -> bytes:
    return holding(f'"x": [{",".join([item] * times)}]')


def numbered(item: str, times: int) -> bytes:
    """Return a card with JSON members that all differ; `#` in `item` becomes their number."""
    return holding(",".join(item.replace("#", f"{n:06x}") for n in range(times)))


def _entries(count: int) -> bytes:
    entry = {"keys": ["coin"], "content": "x" * 40, "extensions": {}, "enabled": True}
    book = {"entries": [{**entry, "insertion_order": 5, "use_regex": False}] * count}
    return as_json(card_data(character_book=book))


def _assets(count: int, uri: str = "embeded://x", **fields: Any) -> Any:
    return card_data(assets=[an_asset(uri.replace("#", str(n)), **fields) for n in range(count)])


def _noise(length: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(length)


def _wide_archive(card: Any = None, before: bytes = b"") -> bytes:
    """Return an archive that unpacks to nearly the limit, from members with the highest ratio."""
    members = {f"{n}": _noise(30_000, n) * 200 for n in range(10)}
    return an_archive(card, members, before=before)


def _full_card(**fields: Any) -> Any:
    """Return a card with nearly as many JSON values as the limit allows."""
    return {**card_data(**fields), "x": [[f"{DRAGON}{n}"] for n in range(300_000)]}


def _one_chunk(length: int) -> bytes:
    return text("chara-ext-asset_:0", bytes(length))


# Worst files by description: the file, and the limit or the words with which it is refused, "" if
# it is read.
JSON_FILES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a text that is never closed": (lambda: b'"' + b'\\"' * 4_000_000, "is not valid JSON"),
    "nothing but opened lists": (lambda: b"[" * 8_000_000, "values"),
    "nothing but opened objects": (lambda: b'{"":' * 2_000_000, "values"),
    "lists as many as allowed": (lambda: listed('["ab"]', 390_000), ""),
    "lists of the widest texts": (lambda: listed(f'["{DRAGON}"]', 390_000), ""),
    "objects as many as allowed": (lambda: listed('{"a":0,"b":0,"c":0}', 119_000), ""),
    "more objects than allowed": (lambda: listed('{"a":0}', 200_000), "objects"),
    "members as many as allowed": (lambda: numbered('"#":"#"', 390_000), ""),
    "members of the widest texts": (lambda: numbered(f'"#{DRAGON}":"#"', 350_000), ""),
    "members that are all there twice": (lambda: numbered('"#":0,"#":0', 190_000), ""),
    "one member as often as allowed": (lambda: listed('{"a":0,"a":0,"a":0}', 119_000), ""),
    "names of thousands of characters": (
        lambda: holding(f'"{"n" * 999_999}":' + f'{{"{"m" * 999_999}": 0}}'),
        "",
    ),
    "long texts as many as allowed": (lambda: listed(f'"{"x" * 999_998}"', 8), ""),
    "the widest texts, as long as allowed": (
        lambda: listed(f'"{DRAGON}{"x" * 999_990}"', 8),
        "",
    ),
    "a text of byte order marks": (lambda: b"\xef\xbb\xbf" * 2_700_000, "is not valid JSON"),
    "a text that is too long": (
        lambda: holding(f'"x": [0, {{"y": "{"x" * 1_000_001}"}}]'),
        "card: data.extensions.x[1].y is too long; the limit is 1000000 (string_characters)",
    ),
    "a name that is too long": (
        lambda: holding(f'"{"n" * 1_000_001}": 0'),
        f"card: data.extensions.{'n' * 40} is too long; the limit is 1000000 (string_characters)",
    ),
    "escapes as many as allowed": (lambda: listed(f'"{chr(92)}ud83d{chr(92)}udc09"', 540_000), ""),
    "a number of eight million digits": (lambda: holding(f'"x": {"1" * 8_000_000}'), "digits"),
    "a fraction of eight million digits": (lambda: holding(f'"x": 0.{"1" * 8_000_000}'), ""),
    "numbers as long as Python reads": (lambda: listed("9" * 4299, 1900), "too large"),
    "a version that is a large value": (
        lambda: as_json({**card_data(), "spec_version": [["x"]] * 390_000}),
        "",
    ),
    "a kind of card that is a large value": (
        lambda: as_json({**card_data(), "spec": [["x"]] * 390_000}),
        "spec",
    ),
    "a book of 50,000 entries": (lambda: _entries(50_000), ""),
    "a book of empty entries": (
        lambda: as_json(card_data(character_book={"entries": [{}] * 99_990})),
        "",
    ),
    "a book of more entries than allowed": (
        lambda: as_json(card_data(character_book={"entries": [0] * 100_001})),
        "entries",
    ),
    "keys as many as allowed": (
        lambda: as_json(card_data(character_book={"entries": [lore("x", keys=["k"] * 700_000)]})),
        "",
    ),
    "decorators by the ten thousand": (
        lambda: as_json(
            card_data(character_book={"entries": [lore("@@depth 1\n@@@role user\n" * 8_000)] * 30})
        ),
        "",
    ),
    "greetings as many as allowed": (
        lambda: as_json(
            card_data(
                alternate_greetings=["Hello."] * 390_000,
                group_only_greetings=["Hello."] * 390_000,
            )
        ),
        "",
    ),
    "greetings that are none": (
        lambda: as_json(card_data(alternate_greetings=[0] * 780_000)),
        "",
    ),
    "tags as many as allowed": (
        lambda: as_json(card_data(tags=[str(n) for n in range(780_000)])),
        "",
    ),
    "tags that are none": (
        lambda: as_json(card_data(tags=[0] * 780_000)),
        "",
    ),
    "notes in more languages than there are": (
        lambda: as_json(
            card_data(creator_notes_multilingual=dict.fromkeys(map(str, range(390_000))))
        ),
        "",
    ),
    "assets as many as allowed": (lambda: as_json(_assets(85_000)), ""),
    "assets that are none": (lambda: as_json(card_data(assets=[{}] * 110_000)), ""),
    "an asset of eight megabytes": (
        lambda: as_json(_assets(1, f"data:;base64,{'QUFB' * 2_000_000}")),
        "",
    ),
    "an asset written in percents": (
        lambda: as_json(_assets(1, f"data:,{'%41' * 2_600_000}")),
        "",
    ),
    "assets written in percents": (lambda: as_json(_assets(40, f"data:,{'%41' * 66_000}")), ""),
    "addresses of data without an end": (lambda: as_json(_assets(80, f"data:{'x' * 99_000}")), ""),
}
PICTURES: dict[str, tuple[Callable[[], bytes], str]] = {
    "a text of zeros in a chunk": (
        lambda: picture(part(b"zTXt", b"ccv3\0\0" + zlib.compress(bytes(80 * MIB), 9))),
        "text_bytes",
    ),
    "a text of blanks in a chunk": (
        lambda: picture(packed("ccv3", b" " * (40 * MIB))),
        "text_bytes",
    ),
    "base64 as large as allowed": (
        lambda: picture(text("ccv3", listed(f'["{DRAGON}"]', 390_000).ljust(8 * MIB))),
        "",
    ),
    "base64 of nothing but blanks": (
        lambda: picture(part(b"tEXt", b"ccv3\0" + b" " * 15_000_000)),
        "is not valid JSON",
    ),
    "a picture of a million chunks": (
        lambda: SIGNATURE + HEADER + part(b"tEXt", b"a\0") * 1_000_000,
        "chunks",
    ),
    "a picture of as many chunks as allowed": (
        lambda: picture(text("ccv3", as_json(card_data())), part(b"tEXt", b"a" * 300) * 19_990),
        "",
    ),
    "one chunk that many assets name": (
        lambda: picture(text("ccv3", as_json(_assets(85_000, "__asset:0"))), _one_chunk(14 * MIB)),
        "",
    ),
    "one broken chunk that many assets name": (
        lambda: picture(
            text("ccv3", as_json(_assets(85_000, "__asset:0"))),
            part(b"tEXt", b"chara-ext-asset_0\0" + b"*" * 16 * MIB),
            part(b"tEXt", b"x\0", crc=1),
        ),
        "",
    ),
    "a picture with a full card and a large asset": (
        lambda: picture(
            text("ccv3", as_json(_full_card(assets=[an_asset("__asset:0")]))), _one_chunk(14 * MIB)
        ),
        "",
    ),
}
ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "an archive that unpacks to 90 MB": (
        lambda: an_archive(None, {f"{n}": bytes(45 * MIB) for n in range(2)}),
        "inflated_bytes",
    ),
    "an archive of 30,000 members": (
        lambda: an_archive(None, {f"{n}": b"" for n in range(30_000)}),
        "members",
    ),
    "an archive of as many members as allowed": (
        lambda: an_archive(None, {f"{n:04x}/" * 190 + "x": b"x" for n in range(1_990)}),
        "",
    ),
    "members with names without end": (
        lambda: an_archive(None, {f"{n}{'/a' * 30_000}": b"" for n in range(250)}),
        "has a name of more than 1000 characters",
    ),
    "an archive that is a directory alone": (
        lambda: b"PK\x03\x04" + b"PK\x01\x02" * 5_000_000 + b"PK\x05\x06" + b"\xff" * 18,
        "members",
    ),
    "an archive as large as allowed": (_wide_archive, ""),
    "an archive with a full card": (lambda: _wide_archive(_full_card()), ""),
    "an archive with a full card behind a JPEG": (
        lambda: _wide_archive(_full_card(), before=JPEG + bytes(3 * MIB)),
        "",
    ),
    "an archive behind a JPEG": (
        lambda: an_archive(None, {"a": _noise(30_000) * 300}, before=JPEG + bytes(30 * MIB)),
        "",
    ),
    "a card that unpacks too far": (
        lambda: an_archive(json.loads(holding(f'"x": "{"x" * 30 * MIB}"'))),
        "ratio",
    ),
    "members that are all one piece of the file": (lambda: _overlapping(1_900), "inflated_bytes"),
    "a JPEG without end": (lambda: JPEG + bytes(31 * MIB), "no ZIP archive"),
    "noise": (lambda: b"\x00" * (33 * MIB), "file_bytes"),
}


def _overlapping(count: int) -> bytes:
    """Return an archive whose members start at the same place and unpack to the same 60 KB."""
    content = an_archive(None, {"x": bytes(60_000)})
    start, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    last = content.rindex(b"PK\x01\x02")
    rows = [content[start:last], *(_renamed(content[last:end], f"{n:04x}") for n in range(count))]
    directory = b"".join(rows)
    sizes = struct.pack("<4H2LH", 0, 0, count + 1, count + 1, len(directory), start, 0)
    return content[:start] + directory + b"PK\x05\x06" + sizes


def _renamed(row: bytes, name: str) -> bytes:
    return row[:28] + struct.pack("<H", len(name)) + row[30:46] + name.encode() + row[47:]


WORST = {**JSON_FILES, **PICTURES, **ARCHIVES}
