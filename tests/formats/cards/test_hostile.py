"""Hostile card files: each row of a table is one attack and its expected outcome."""

import builtins
import json
import os
import socket
import struct
import warnings
from pathlib import Path

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.formats.cards.loading import CardImport, load_card
from tests.formats.cards.builders import card_data, lore
from tests.formats.cards.carriers import (
    END,
    PIXELS,
    a_member,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    part,
    picture,
    text,
)

CARD = card_data(tags=["sea"])
JSON = as_json(CARD)
V2 = {**CARD, "spec": "chara_card_v2", "spec_version": "2.0"}
STALE = {**V2, "name": "Old name", "description": "Old text", "first_mes": "Old words"}


def changed(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    return content.replace(old, new)


def encrypted(content: bytes) -> bytes:
    made = bytearray(content)
    made[content.index(b"PK\x01\x02") + 8] |= 1
    return bytes(made)


def declaring(content: bytes, size: int) -> bytes:
    """Return an archive whose last member declares this unpacked size."""
    made = bytearray(content)
    struct.pack_into("<I", made, content.rindex(b"PK\x01\x02") + 24, size)
    return bytes(made)


def twice(name: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return an_archive(CARD, [(name, b"1"), (name, b"2")])


# Maps attacks to the hostile file, and to words in the error that refuses it.
REFUSED = {
    "truncated JSON": (JSON[:-2], "is not valid JSON"),
    "truncated picture": (picture(text("ccv3", JSON))[:90], "cut off in the text chunk"),
    "truncated archive": (an_archive(CARD)[:-9], "cut off"),
    "wrong CRC of a chunk": (picture(text("ccv3", JSON, crc=1)), "checksum (CRC)"),
    "wrong CRC of a member": (
        changed(an_archive(CARD, [(a_member(), b"sixteen bytes...")]), b"sixteen", b"SIXTEEN"),
        "Bad CRC-32",
    ),
    "wrong base64": (picture(part(b"tEXt", b"ccv3\0e30*")), "not base64"),
    "not UTF-8": (JSON.replace(b"Marta", b"Mart\xe9"), "not UTF-8 text"),
    "not UTF-8 in a chunk": (picture(text("ccv3", b"\xff\xfe{}")), "not UTF-8 text"),
    "not UTF-8 in an archive": (an_archive(False, {"card.json": b"\x80"}), "not UTF-8 text"),
    "UTF-16": (JSON.decode().encode("utf-16"), "not UTF-8 text"),
    "half a character": (JSON.replace(b"Marta", rb"\ud800"), "half a character"),
    "NaN": (JSON.replace(b'"tags": ["sea"]', b'"tags": NaN'), "NaN is not a JSON number"),
    "Infinity": (JSON.replace(b'["sea"]', b"-Infinity"), "-Infinity is not a JSON number"),
    "a number that is infinite": (JSON.replace(b'["sea"]', b"1e999"), "not finite"),
    "a number that is too large": (JSON.replace(b'["sea"]', b"9" * 30), "too large"),
    "duplicate chunks": (a_picture(CARD, text("ccv3", as_json(V2))), "2 chunks ccv3"),
    "duplicate cards in an archive": (twice("card.json"), "there 3 times"),
    "duplicate members": (twice("a.png"), "there 2 times"),
    "an encrypted member": (encrypted(an_archive(CARD)), "is encrypted"),
    "traversal": (an_archive(CARD, {"../../evil.py": b"x"}), "leads out of the archive"),
    "traversal in the middle": (an_archive(CARD, {"a/../../x": b"x"}), "leads out of the archive"),
    "traversal with backslashes": (an_archive(CARD, {"..\\evil.py": b"x"}), "backslash"),
    "an absolute path": (an_archive(CARD, {"/etc/cron.d/x": b"x"}), "absolute path"),
    "a drive": (an_archive(CARD, {"C:evil.py": b"x"}), "absolute path"),
    "a device": (an_archive(CARD, {"assets/con.png": b"x"}), "the name of a device"),
    "a device with a stream": (an_archive(CARD, {"lpt1:x": b"x"}), "the name of a device"),
    "a symbolic link": (
        an_archive(CARD, [(a_member(external_attr=0o120777 << 16), b"/etc/passwd")]),
        "symbolic link",
    ),
    "a name that ends at a zero byte": (
        an_archive(CARD, {"aXb": b"x"}).replace(b"aXb", b"a\0b"),
        "control characters",
    ),
    "a name without end": (an_archive(CARD, {"x" * 1001: b""}), "more than 1000 characters"),
    "a size that is not true": (
        declaring(an_archive(CARD, {"a": bytes(3_000_000)}), 10),
        "Bad CRC-32",
    ),
    "a card below the root": (an_archive(False, {"sub/card.json": JSON}), "no card.json"),
    "an archive for a card": (an_archive(False, {"card.json": an_archive(CARD)}), "not UTF-8 text"),
    "a picture for a card": (an_archive(False, {"card.json": a_picture(CARD)}), "not UTF-8 text"),
    "null for a card": (b"null", "must be an object"),
    "null for its data": (as_json({**CARD, "data": None}), "card.data: must be an object"),
    "a number as a name": (as_json(card_data(name=7)), "name: must be text"),
    "null for a name": (as_json(card_data(name=None)), "name: must be text"),
    "a text that is too long": (as_json(card_data(scenario="x" * 200_001)), "card.data.scenario"),
    **{
        f"2,001 times {macro[:30]} in {field}": (
            as_json(card_data(**{field: macro * 2_001})),
            f"card.data.{field}: has 2001 macros, and 2000 are the limit for one text",
        )
        for field, macro in (
            ("description", "{{roll:1d6}}"),
            ("personality", "{{roll:100d6}}"),
            ("scenario", "{{incvar::a}}"),
            ("first_mes", "{{random::a::b}}"),
            ("mes_example", "{{pick:a,b}}"),
            ("system_prompt", "{{lastMessage}}"),
            ("post_history_instructions", "{{char}}"),
            ("creator_notes", "<USER>"),
        )
    },
    "braces without end": (as_json(card_data(description="{" * 190_000)), "has 95000 macros"),
    "too many macros in a greeting": (
        as_json(card_data(alternate_greetings=["Aye.", "{{reverse:abc}}" * 2_001])),
        "card.data.alternate_greetings[1]: has 2001 macros",
    ),
    "too many macros at a depth": (
        as_json(card_data(extensions={"depth_prompt": {"prompt": "{{trim}}" * 2_001}})),
        "card.data.extensions.depth_prompt.prompt: has 2001 macros",
    ),
    "too many macros together": (
        as_json(card_data(alternate_greetings=["{{roll:6}}" * 1_999] * 6)),
        "card.data.alternate_greetings[5]: the texts of the file have more than 10000 macros",
    ),
}


def refusal(content: bytes, **limits: int) -> str:
    with pytest.raises(FormatError) as caught:
        load_card(content, limits=CardLimits(**limits))
    return caught.value.message


@pytest.mark.parametrize("what", REFUSED)
def test_hostile_card_is_refused(what):
    content, words = REFUSED[what]
    assert words in refusal(content)


# Maps unusual but readable content to the file, and to the beginning of its only notice.
READ = {
    "stale V1 copies beside V2": (as_json(STALE), ""),
    "stale V1 copies beside V3": (as_json({**STALE, **card_data()}), ""),
    "a stale V2 chunk beside V3": (a_picture(CARD, text("chara", as_json(STALE))), ""),
    "V2 inside ccv3": (a_picture(V2), "the chunk ccv3 holds a card of chara_card_v2"),
    "V3 inside chara": (a_picture(CARD, keyword="chara"), "the chunk chara holds a card of"),
    "V2 inside an archive": (an_archive(V2), "card.json holds a card of chara_card_v2"),
    "null where text belongs": (as_json(card_data(personality=None)), "personality is null"),
    "a number as text": (as_json({**CARD, "spec_version": 3}), "spec_version is not text"),
    "a member that occurs twice": (
        JSON.replace(b'"tags"', b'"tags": [], "tags"'),
        "member 'tags' occurs twice",
    ),
    "a nested archive": (an_archive(CARD, {"x.charx": an_archive(V2)}), ""),
    "another archive behind the picture": (a_picture(CARD) + an_archive(V2), ""),
    "pixels that are none": (a_picture(CARD).replace(PIXELS, part(b"IDAT", b"rubbish")), ""),
    "a picture without pixels": (a_picture(CARD).replace(PIXELS, b""), ""),
    "a picture without an end": (a_picture(CARD).replace(END, b""), "the picture is cut off"),
    "a broken chunk that is not the card's": (a_picture(CARD, part(b"eXIf", b"x", crc=1)), ""),
    "as many dice as there may be": (as_json(card_data(scenario="{{roll:100d6}}" * 2_000)), ""),
    "blanks in the name of an outlet": (
        as_json(card_data(scenario="{{outlet::a" + " " * 190_000 + "b}}")),
        "",
    ),
}


@pytest.mark.parametrize("what", READ)
def test_unusual_card_is_read_with_a_notice(what):
    content, notice = READ[what]
    found = load_card(content)
    assert (found.card.name, found.card.description) == ("Marta", "Marta keeps the lamp.")
    assert [told[: len(notice)] for told in found.notices] == [notice] * bool(notice)


def test_numbers_as_text_in_a_book_are_read():
    entry = lore("The gate.", insertion_order="7", priority="3", enabled=1)
    assert load_card(as_json(card_data(character_book={"entries": [entry]}))).notices == ()


@pytest.mark.parametrize(
    ("limits", "content"),
    [
        ({"file_bytes": 99}, JSON),
        ({"text_bytes": 99}, JSON),
        ({"string_characters": 20}, as_json(card_data(creator="x" * 21))),
        ({"string_characters": 40}, as_json(card_data(extensions={"x" * 41: 0}))),
        ({"string_characters": 40}, as_json(card_data(tags=["sea", "x" * 41]))),
        ({"objects": 2}, JSON),
        ({"values": 9}, JSON),
        ({"nesting": 5}, as_json(card_data(extensions={"a": {"b": [[]]}}))),
        ({"entries": 1}, as_json(card_data(character_book={"entries": [{}, {}]}))),
        ({"chunks": 2}, a_picture(CARD)),
        ({"members": 2}, an_archive(CARD, {"a": b"", "b": b""})),
        ({"inflated_bytes": 9}, an_archive(CARD, {"a": b"0123456789"})),
        ({"inflated_bytes": 9}, an_archive(CARD, before=b"\xff\xd8\xff 0123456789")),
        (
            {"inflated_bytes": 9},
            a_picture(
                card_data(assets=[an_asset("__asset:0"), an_asset("__asset:1", name="b")]),
                text("chara-ext-asset_:0", b"01234"),
                text("chara-ext-asset_:1", b"56789"),
            ),
        ),
        ({}, an_archive(CARD, {"a": bytes(2_000_000)})),
    ],
)
def test_error_names_the_card_limit_that_is_exceeded(limits, content):
    name = next(iter(limits), "ratio")
    assert refusal(content, **limits).endswith(f"({name})")


def test_error_names_the_path_of_a_too_long_card_text():
    card = card_data(extensions={"app": [{}, {"code\n": "x" * 100}]})
    assert refusal(as_json(card), string_characters=99) == (
        "card: data.extensions.app[1].code  is too long; the limit is 99 (string_characters)"
    )


def test_data_address_may_be_longer_than_other_strings():
    card = card_data(assets=[an_asset(f"DATA:;base64,{'QUFB' * 50}")])
    found = load_card(as_json(card), limits=CardLimits(string_characters=99))
    assert found.assets[0].content == b"AAA" * 50


def test_asset_chunk_is_decoded_once_for_many_assets():
    card = card_data(assets=[an_asset("__asset:0", name=f"{n}") for n in range(50)])
    content = a_picture(card, text("chara-ext-asset_:0", b"0123456789"))
    found = load_card(content, limits=CardLimits(inflated_bytes=10))
    assert len({id(asset.content) for asset in found.assets}) == 1


def test_long_percent_encoded_address_is_kept_without_decoding():
    card = card_data(assets=[an_asset(f"data:,{'%41' * 70_000}")])
    found = load_card(as_json(card))
    assert (found.assets[0].content, found.raw) == (None, card)
    assert "more than 200000 characters without base64; the asset stays" in found.notices[0]


def test_million_invalid_tags_are_counted_in_one_notice():
    found = load_card(as_json(card_data(tags=["a", *[0] * 700_000])))
    assert (found.card.tags, found.notices) == (
        ("a",),
        ("tags: 700000 of 700001 are not text and are left out",),
    )


HOSTILE = card_data(
    assets=[
        an_asset("https://nowhere.invalid/a.png"),
        an_asset("file:///etc/passwd", name="b"),
        an_asset("embeded://../../etc/passwd", name="c"),
        an_asset("\\\\nowhere.invalid\\share", name="d"),
    ]
)


@pytest.fixture
def no_access(monkeypatch):
    """Make every network access and every file access fail."""

    def refused(*_args, **_kwargs):
        raise AssertionError("loading a card used a file or the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    for name in ("open", "mkdir", "makedirs", "symlink", "rename"):
        monkeypatch.setattr(os, name, refused)
    monkeypatch.setattr(builtins, "open", refused)
    monkeypatch.setattr(Path, "open", refused)


@pytest.mark.usefixtures("no_access")
@pytest.mark.parametrize(
    "content",
    [as_json(HOSTILE), a_picture(HOSTILE), an_archive(HOSTILE, {"assets/x.py": b"x"})],
    ids=["json", "png", "charx"],
)
def test_hostile_card_writes_no_file_and_fetches_no_address(content):
    found = load_card(content)
    assert isinstance(found, CardImport)
    assert [asset.content for asset in found.assets] == [None] * 4
    assert json.loads(as_json(found.raw)) == HOSTILE
