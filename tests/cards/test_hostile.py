"""The worst files there are: read or refused in two seconds, without taking the memory."""

import json
import random
import time
import tracemalloc
import zlib

import pytest

from evennia_ai.cards.loading import load_card
from evennia_ai.prompt.errors import FormatError
from tests.cards.builders import card_data
from tests.cards.carriers import (
    HEADER,
    SIGNATURE,
    an_archive,
    an_asset,
    as_json,
    packed,
    part,
    picture,
)

MIB = 1024 * 1024


def holding(value: str) -> bytes:
    """A card with JSON somewhere in its extensions."""
    return as_json(card_data(extensions={"here": 0})).replace(b'"here": 0', value.encode())


def listed(item: str, times: int) -> bytes:
    return holding(f'"x": [{", ".join([item] * times)}]')


def _entries(count: int) -> bytes:
    entry = {"keys": ["coin"], "content": "x" * 40, "extensions": {}, "enabled": True}
    book = {"entries": [{**entry, "insertion_order": 5, "use_regex": False}] * count}
    return as_json(card_data(character_book=book))


# What a bomb is, and the limit that it runs into; "" where it is read.
BOMBS = {
    "a text that is never closed": (lambda: b'"' + b'\\"' * 5_000_000, "no valid JSON"),
    "nothing but opened lists": (lambda: b"[" * 11_000_000, "values"),
    "lists as many as allowed": (lambda: listed('["ab"]', 450_000), ""),
    "objects as many as allowed": (lambda: listed('{"a":0}', 119_000), ""),
    "more objects than allowed": (lambda: listed('{"a":0}', 200_000), "objects"),
    "members as many as allowed": (
        lambda: holding(", ".join(f'"{n:06x}":"{n:06x}"' for n in range(490_000))),
        "",
    ),
    "members that are all there twice": (
        lambda: holding(", ".join(f'"{n}":0,"{n}":0' for n in range(240_000))),
        "",
    ),
    "a book of 50,000 entries": (lambda: _entries(50_000), ""),
    "assets as many as allowed": (
        lambda: as_json(card_data(assets=[an_asset("embeded://x")] * 110_000)),
        "",
    ),
    "a text of zeros in a chunk": (
        lambda: picture(part(b"zTXt", b"ccv3\0\0" + zlib.compress(bytes(80 * MIB), 9))),
        "text_bytes",
    ),
    "a text of blanks in a chunk": (
        lambda: picture(packed("ccv3", b" " * (40 * MIB))),
        "text_bytes",
    ),
    "a picture of a million chunks": (
        lambda: SIGNATURE + HEADER + part(b"tEXt", b"a\0") * 1_000_000,
        "chunks",
    ),
    "an archive that unpacks to 90 MB": (
        lambda: an_archive(None, {f"{n}": bytes(45 * MIB) for n in range(2)}),
        "inflated_bytes",
    ),
    "an archive of 30,000 members": (
        lambda: an_archive(None, {f"{n}": b"" for n in range(30_000)}),
        "members",
    ),
    "an archive that is a directory alone": (
        lambda: b"PK\x03\x04" + b"PK\x01\x02" * 5_000_000 + b"PK\x05\x06" + b"\xff" * 18,
        "members",
    ),
    "an archive as large as allowed": (
        lambda: an_archive(
            None, {f"{n}": random.Random(n).randbytes(9_000) * 90 for n in range(70)}
        ),
        "",
    ),
    "a picture without end": (lambda: b"\xff\xd8\xff" + bytes(31 * MIB), "no ZIP archive"),
    "noise": (lambda: b"\x00" * (33 * MIB), "file_bytes"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_the_worst_file_is_read_or_refused_in_two_seconds(name):
    make, limit = BOMBS[name]
    content = make()
    started = time.process_time()
    told = _told(content)
    assert time.process_time() - started < 2
    assert limit in told
    assert bool(limit) is bool(told)


@pytest.mark.parametrize("name", [name for name, (_, limit) in BOMBS.items() if limit])
def test_a_file_that_is_refused_takes_little_memory(name):
    content = BOMBS[name][0]()
    tracemalloc.start()
    try:
        _told(content)
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    finally:
        tracemalloc.stop()


def test_nesting_as_deep_as_allowed_is_read():
    deep = json.loads("[" * 61 + "]" * 61)
    assert load_card(as_json(card_data(extensions={"x": deep}))).card.name == "Marta"
    assert "nested more than 64 deep" in _told(as_json(card_data(extensions={"x": [deep]})))


def _told(content: bytes) -> str:
    """Why the file is refused, "" where it is read."""
    try:
        load_card(content)
    except FormatError as error:
        return error.message
    return ""
