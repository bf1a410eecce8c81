"""Every file format gives the same card or an error of one line, and respects all limits."""

import base64
import json
import re
import struct
import warnings
import zipfile
import zlib
from pathlib import Path

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.card import DEFAULT_ASSETS
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.formats.cards.loading import load_card
from tests.formats.cards.builders import card_data
from tests.formats.cards.carriers import (
    END,
    SIGNATURE,
    a_member,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    international,
    packed,
    part,
    picture,
    text,
)

CARD = card_data(tags=["sea"], nickname="Mar")
JSON = as_json(CARD)
V2 = {**CARD, "spec": "chara_card_v2", "spec_version": "2.0"}
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
JPEG = b"\xff\xd8\xff\xe0 pixels \xff\xd9"
FRAMES = part(b"acTL", struct.pack(">II", 1, 0))


def refusal(content: bytes, **limits: int) -> str:
    """Return the message of the error with which a card file is refused."""
    with pytest.raises(FormatError) as caught:
        load_card(content, limits=CardLimits(**limits))
    assert caught.value.kind == "card"
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize(
    ("content", "carrier"),
    [
        (JSON, "json"),
        (b"\xef\xbb\xbf" + JSON, "json"),
        (a_picture(CARD), "png"),
        (a_picture(CARD, FRAMES), "apng"),
        (picture(behind=[text("ccv3", JSON)]), "png"),
        (a_picture(CARD, text("chara", as_json(V2))), "png"),
        (a_picture(CARD, text("Software", b"x"), part(b"gAMA", b"\0\0\0\1")), "png"),
        (a_picture(CARD) + b"behind the end PK\x03\x04", "png"),
        (an_archive(CARD), "charx"),
        (an_archive(CARD, {"x_meta/0.json": b"{}"}), "charx"),
        (an_archive(CARD, before=JPEG), "charx"),
    ],
)
def test_every_file_format_gives_the_same_card_without_a_notice(content, carrier):
    found = load_card(content)
    assert (found.carrier, found.raw, found.notices) == (carrier, CARD, ())
    assert (found.card.name, found.card.nickname) == ("Marta", "Mar")


def test_file_format_does_not_depend_on_the_suffix(tmp_path):
    (tmp_path / "card.txt").write_bytes(a_picture(CARD))
    assert load_card(tmp_path / "card.txt").raw == CARD


def test_error_names_the_reason_why_a_card_file_cannot_be_read(tmp_path):
    with pytest.raises(FormatError, match="card: cannot be read: No such file"):
        load_card(tmp_path / "gone")
    with pytest.raises(FormatError, match="card: cannot be read: "):
        load_card(tmp_path)
    with pytest.raises(FormatError, match="card: cannot be read: "):
        load_card(Path("a\0b"))


def test_card_import_of_an_endless_device_file_says_that_the_file_is_too_large():
    with pytest.raises(FormatError, match=r"too many bytes; the limit is 1000 \(file_bytes\)"):
        load_card(Path("/dev/zero"), limits=CardLimits(file_bytes=1000))


@pytest.mark.parametrize(
    ("content", "notices"),
    [
        (picture(packed("ccv3", JSON)), ["the card's chunk is zTXt; the standard requires tEXt"]),
        (
            picture(international("ccv3", JSON, is_packed=True)),
            ["the card's chunk is iTXt; the standard requires tEXt"],
        ),
        (
            picture(international("ccv3", JSON, is_packed=False)),
            ["the card's chunk is iTXt; the standard requires tEXt"],
        ),
        (a_picture(CARD, keyword="CCv3"), ["the card's chunk is called 'CCv3', not ccv3"]),
        (a_picture(CARD, keyword="chara"), ["the chunk chara holds a card of chara_card_v3; it"]),
        (
            picture(text("ccv3", JSON))[: -len(END)],
            ["the picture is cut off: its last chunk (IEND) is missing"],
        ),
        (
            picture(text("ccv3", JSON))[: -len(END) - 6],
            ["the picture is cut off in a chunk of 10 bytes"],
        ),
        (
            picture(part(b"tEXt", b"ccv3\0" + base64.b64encode(JSON + b"  ").rstrip(b"="))),
            ["the card's base64 has no padding: it was added"],
        ),
    ],
)
def test_unusual_but_intact_picture_is_read_with_a_notice(content, notices):
    found = load_card(content)
    assert found.raw == CARD
    assert [told[: len(known)] for told, known in zip(found.notices, notices, strict=True)] == (
        notices
    )


def test_base64_of_a_card_may_be_broken_into_lines():
    lines = base64.encodebytes(JSON).replace(b"\n", b"\r\n")
    found = load_card(picture(part(b"tEXt", b"ccv3\0" + lines)))
    assert (found.raw, found.notices) == (CARD, ())


@pytest.mark.parametrize("keyword", ["chara", "Chara", "CHARA"])
def test_older_cards_are_read_from_their_chunk(keyword):
    v1 = {"name": "Marta", "description": "Keeps the lamp."}
    for card, spec in ((V2, "chara_card_v2"), (v1, "v1")):
        found = load_card(a_picture(card, keyword=keyword))
        assert (found.card.spec, found.raw, found.notices) == (spec, card, ())


def test_v3_chunk_of_a_picture_wins_and_the_older_chunk_is_not_read():
    for stale in (text("chara", b"rubbish"), text("chara", as_json(V2), crc=1)):
        found = load_card(picture(stale, text("ccv3", JSON), stale))
        assert (found.raw, found.notices) == (CARD, ())


def test_older_card_in_the_v3_chunk_is_read_with_a_notice():
    found = load_card(a_picture(V2))
    assert found.notices == ("the chunk ccv3 holds a card of chara_card_v2; it is read as that",)
    archived = load_card(an_archive(V2))
    assert archived.notices == ("card.json holds a card of chara_card_v2; it is read as that",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SIGNATURE, "card: no card in the picture; it would be in a text chunk called ccv3 or cha"),
        (picture(), "card: no card in the picture"),
        (picture(text("comment", JSON)), "card: no card in the picture"),
        (picture(part(b"tEXt", b"ccv3" + JSON)), "card: no card in the picture"),
        (
            a_picture(CARD, text("ccv3", JSON)),
            "card: the picture has 2 chunks ccv3; only one is allowed",
        ),
        (a_picture(CARD, packed("CCV3", JSON)), "card: the picture has 2 chunks ccv3; only one"),
        (picture(text("chara", JSON), text("Chara", JSON)), "card: the picture has 2 chunks chara"),
        (
            picture(text("ccv3", JSON, crc=7)),
            "card: the checksum (CRC) of the chunk ccv3 is wrong; download the file again",
        ),
        (picture(text("ccv3", JSON))[:100], "card: cut off in the text chunk at byte 33"),
        (
            picture()[:33] + b"\xff\xff\xff\xffIDATxxxx",
            "card: the chunk at byte 33 has a length that PNG forbids",
        ),
        (
            picture(part(b"tEXt", b"ccv3\0e30*")),
            "card: the chunk ccv3 is not base64: it has a character it cannot have (b'*')",
        ),
        (
            picture(part(b"tEXt", b"ccv3\0e30-_w==")),
            "card: the chunk ccv3 is not base64: it has a character it cannot have (b'-')",
        ),
        (picture(part(b"tEXt", b"ccv3\0A")), "card: the chunk ccv3 is not base64: it has a wrong "),
        (picture(part(b"tEXt", b"ccv3\0e3==0=")), "card: the chunk ccv3 is not base64"),
        (picture(part(b"tEXt", b"ccv3\0")), "card: is not valid JSON"),
        (picture(part(b"zTXt", b"ccv3\0\0rubbish")), "card: the chunk ccv3 is not zlib data"),
        (
            picture(part(b"zTXt", b"ccv3\0\0" + zlib.compress(b"e30=")[:-5])),
            "card: the chunk ccv3 is cut off",
        ),
        (a_picture(CARD, keyword="x"), "card: no card in the picture"),
        (picture(text("ccv3", b"\xff\xfe")), "card: the chunk ccv3: not UTF-8 text (byte 0)"),
        (
            picture(text("ccv3", b'{"a": NaN}')),
            "card: is not valid JSON (NaN is not a JSON number)",
        ),
        (picture(text("ccv3", b"[]")), "card: must be an object"),
    ],
)
def test_hostile_picture_is_refused(content, message):
    assert refusal(content).startswith(message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (an_archive(False), "card: the archive has no card.json at its root"),
        (an_archive(False, {"evil-card.json": JSON}), "card: the archive has no card.json"),
        (an_archive(False, {"sub/card.json": JSON}), "card: the archive has no card.json"),
        (an_archive(False, {"CARD.JSON": JSON}), "card: the archive has no card.json"),
        (an_archive(CARD, {"../up.png": b""}), "card: member '../up.png' leads out of the arch"),
        (an_archive(CARD, {"a/../../up": b""}), "card: member 'a/../../up' leads out"),
        (an_archive(CARD, {"/etc/x": b""}), "card: member '/etc/x' has an absolute path"),
        (an_archive(CARD, {"C:/x": b""}), "card: member 'C:/x' has an absolute path"),
        (an_archive(CARD, {"a\\b": b""}), "card: member 'a\\b' has a backslash in its name"),
        (an_archive(CARD, {"a\x1bb": b""}), "card: member 'a b' has control characters"),
        (
            an_archive(CARD, {"assets/NUL.png": b""}),
            "card: member 'assets/NUL.png' has the name of a device",
        ),
        (an_archive(CARD, {"com1": b""}), "card: member 'com1' has the name of a device"),
        (
            an_archive(CARD, [(a_member(external_attr=0o120777 << 16), b"/etc/passwd")]),
            "card: member 'x.bin' is a symbolic link",
        ),
        (
            an_archive(CARD, [(a_member(compress_type=zipfile.ZIP_BZIP2), b"x")]),
            "card: member 'x.bin' uses an unsupported compression; use deflate",
        ),
        (JPEG, "card: no ZIP archive after the JPEG picture, or one that is cut off; download"),
        (an_archive(CARD)[:-30], "card: no ZIP archive, or one that is cut off"),
        (b"PK\x03\x04", "card: no ZIP archive"),
        (b"PK\x05\x06" + bytes(18), "card: the archive has no card.json"),
    ],
)
def test_hostile_archive_is_refused(content, message):
    assert refusal(content).startswith(message)


def test_error_for_an_empty_card_file_says_that_the_file_is_empty():
    assert refusal(b" \n") == "card: the file is empty; download it again"


@pytest.mark.parametrize(
    "start", [b"RIFF\x24\0\0\0WEBPVP8 ", b"GIF89a", b"BM6", b"\0\0\0\x20ftypavif"]
)
def test_card_import_says_that_this_kind_of_picture_cannot_hold_a_card(start):
    assert refusal(start + bytes(40)).startswith("card: this kind of picture cannot hold a card")


def test_archive_with_duplicate_members_is_refused():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = an_archive(CARD, [("card.json", as_json(V2))])
        other = an_archive(CARD, [("a.png", b"1"), ("a.png", b"2")])
    assert refusal(twice) == "card: member 'card.json' is there 2 times; keep only one"
    assert refusal(other) == "card: member 'a.png' is there 2 times; keep only one"


def test_archive_member_with_a_zero_byte_in_its_name_is_refused():
    content = an_archive(False, {"card.jsonXevil": JSON}).replace(b"card.jsonX", b"card.json\0")
    assert refusal(content).startswith("card: member 'card.json' has control characters")


def test_encrypted_archive_member_is_refused():
    content = bytearray(an_archive(CARD))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    assert refusal(bytes(content)) == (
        "card: member 'card.json' is encrypted, which CHARX does not allow"
    )


def test_archive_member_with_changed_bytes_is_refused():
    content = an_archive(CARD, [(a_member(filename="a.bin"), b"sixteen bytes...")])
    assert "card: the archive cannot be read (Bad CRC-32" in refusal(
        content.replace(b"sixteen", b"SIXTEEN")
    )


@pytest.mark.parametrize(
    ("content", "limits", "limit"),
    [
        (JSON, {"file_bytes": 100}, "file_bytes"),
        (JSON, {"text_bytes": 100}, "text_bytes"),
        (a_picture(CARD), {"text_bytes": 100}, "text_bytes"),
        (a_picture(CARD), {"text_bytes": len(JSON) - 1}, "text_bytes"),
        (an_archive(CARD), {"text_bytes": 100}, "text_bytes"),
        (picture(packed("ccv3", b" " * 100_000 + JSON)), {"text_bytes": 50_000}, "text_bytes"),
        (a_picture(CARD), {"chunks": 2}, "chunks"),
        (an_archive(CARD, {"a": b"", "b": b""}), {"members": 2}, "members"),
        (an_archive(CARD, {"a": b"x" * 5000}), {"inflated_bytes": 4999}, "inflated_bytes"),
        (an_archive(CARD, {"a": bytes(2_000_000)}), {}, "ratio"),
        (JSON, {"objects": 2}, "objects"),
        (JSON, {"values": 10}, "values"),
        (as_json(card_data(extensions={"a": {"b": [[]]}})), {"nesting": 6}, ""),
        (as_json(card_data(extensions={"a": {"b": [[]]}})), {"nesting": 5}, "nesting"),
        (as_json(card_data(character_book={"entries": [{}, {}]})), {"entries": 2}, ""),
        (as_json(card_data(character_book={"entries": [{}, {}]})), {"entries": 1}, "entries"),
        (as_json(card_data(description="{,[" * 900, first_mes='"{\\" {,')), {"objects": 5}, ""),
    ],
)
def test_card_file_over_a_limit_is_refused_with_the_name_of_the_limit(content, limits, limit):
    if limit:
        assert refusal(content, **limits).endswith(f"({limit})")
    else:
        assert load_card(content, limits=CardLimits(**limits)).card.name == "Marta"


@pytest.mark.parametrize("limits", [{"chunks": 0}, {"nesting": 65}, {"entries": 10**6}])
def test_invalid_card_limit_is_refused(limits):
    with pytest.raises(FormatError, match=f"limit {next(iter(limits))} must be "):
        CardLimits(**limits)


def test_declared_size_of_an_archive_member_is_not_trusted():
    content = bytearray(an_archive(CARD, {"a": bytes(3_000_000)}))
    sizes = [at for at in range(len(content)) if content[at : at + 4] == b"PK\x01\x02"]
    struct.pack_into("<I", content, sizes[1] + 24, 10)
    assert "card: the archive cannot be read (Bad CRC-32" in refusal(bytes(content))


def test_asset_is_found_in_each_spelling_of_its_address():
    assets = [
        an_asset("embeded://assets/icon/images/main.png"),
        an_asset("embedded://a b.bin", type="x_other", name="b", ext="bin"),
        an_asset("__asset:0", type="emotion", name="sad"),
        an_asset("https://nowhere.invalid/x.png", type="background"),
        an_asset("data:image/png;base64,aGk=", type="emotion", name="hi"),
        an_asset("data:,a%20b", type="x_text", name="t", ext="txt"),
        an_asset("ccdefault:", type="user_icon", name="me"),
    ]
    members = {"assets/icon/images/main.png": SIGNATURE, "a b.bin": b"B", "0": b"zero"}
    contents = [SIGNATURE, b"B", b"zero", None, b"hi", b"a b", None]
    archived = load_card(an_archive(card_data(assets=assets), members))
    assert [found.content for found in archived.assets] == contents
    assert [found.resolved for found in archived.assets] == [c is not None for c in contents]
    assert [found.asset.uri for found in archived.assets] == [a["uri"] for a in assets]
    assert {found.path: found.content for found in archived.members} == members
    assert (archived.picture, archived.notices) == (SIGNATURE, ())


def test_path_of_an_asset_is_case_sensitive():
    assets = [an_asset("embeded://A.png"), an_asset("embeded://a.png", name="b")]
    found = load_card(an_archive(card_data(assets=assets), {"a.png": b"a"}))
    assert [asset.content for asset in found.assets] == [None, b"a"]


def test_assets_in_chunks_of_a_picture_are_found_with_and_without_the_colon():
    assets = [an_asset("__asset:0"), an_asset("__asset:a/b.png", type="emotion", name="sad")]
    chunks = text("chara-ext-asset_:0", b"zero"), text("chara-ext-asset_a/b.png", b"sad")
    found = load_card(a_picture(card_data(assets=assets), *chunks))
    assert [asset.content for asset in found.assets] == [b"zero", b"sad"]
    assert found.notices == ()


def test_missing_asset_gives_a_notice_and_stays_in_the_card():
    assets = [
        an_asset("__asset:0"),
        an_asset("__asset:1", type="emotion"),
        an_asset("data:;base64,*", type="emotion", name="x"),
        an_asset("EMBEDED://0", type="emotion", name="y"),
    ]
    broken = text("chara-ext-asset_:1", b"one", crc=1)
    found = load_card(a_picture(card_data(assets=assets), broken))
    assert [asset.resolved for asset in found.assets] == [False] * 4
    assert [asset.asset.uri for asset in found.assets] == [asset["uri"] for asset in assets]
    assert [notice.partition(": ")[0] for notice in found.notices] == [
        *("assets[0]", "assets[1]", "assets[2]")
    ]


def test_json_card_has_no_notice_about_missing_files():
    found = load_card(as_json(card_data(assets=[an_asset("embeded://a.png")])))
    assert (found.assets[0].resolved, found.notices) == (False, ())


def test_card_without_assets_has_the_picture_of_its_file():
    content = a_picture(CARD)
    found = load_card(content)
    assert [each.asset for each in found.assets] == list(DEFAULT_ASSETS)
    assert found.picture == content
    assert load_card(an_archive(CARD, before=JPEG)).picture == JPEG
    assert load_card(JSON).picture is None


def test_archives_and_pictures_inside_an_archive_are_never_opened():
    inner = an_archive(CARD, {"bomb": bytes(3_000_000)})
    found = load_card(an_archive(CARD, {"inner.charx": inner, "x.png": a_picture(V2)}))
    assert found.raw == CARD
    assert found.members[0].content == inner


def test_inner_archive_does_not_change_the_outer_directory():
    inner = an_archive(V2, {"inner.png": b"inner"})
    found = load_card(an_archive(CARD, [(a_member(filename="inner.charx"), inner)]))
    assert (found.raw, [member.path for member in found.members]) == (CARD, ["inner.charx"])


@pytest.mark.parametrize("member", ["spec_version", "x\x1b[2Jy"])
def test_notices_on_a_card_are_limited_and_on_one_line(member):
    twice = ", ".join(f'"{n}": 1, "{n}": 2' for n in range(500))
    content = JSON[:-1] + f', "extensions": {{{twice}, {json.dumps(member)}: 1}}}}'.encode()
    found = load_card(content)
    assert len(found.notices) == 11
    assert not any(CONTROL.search(notice) for notice in found.notices)
