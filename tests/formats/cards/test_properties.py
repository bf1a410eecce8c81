"""Properties of all card files, also checked by the fuzz targets."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.loading import load_card
from fuzz.card_checks import (
    TARGETS,
    check_decorators,
    check_file,
    check_text,
    chosen_card,
    with_sound_chunks,
    with_sound_members,
)
from fuzz.lore_checks import Choices
from tests.formats.cards.builders import card_data
from tests.formats.cards.carriers import (
    END,
    HEADER,
    PIXELS,
    SIGNATURE,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    packed,
    part,
    picture,
    text,
)

CARD = card_data(tags=["sea"], nickname="Mar")
JSON = as_json(CARD)
JPEG = b"\xff\xd8\xff\xe0 pixels \xff\xd9"
CARRIERS = [
    JSON,
    a_picture(CARD, text("chara-ext-asset_:0", b"zero")),
    picture(packed("ccv3", JSON)),
    an_archive(CARD, {"a.png": b"pixels" * 9}),
    an_archive(card_data(assets=[an_asset("embeded://a.png")]), {"a.png": b"x"}, before=JPEG),
]
STARTS = [
    b"",
    SIGNATURE,
    SIGNATURE + HEADER,
    b"PK\x03\x04",
    b"\xff\xd8\xff",
    b"{",
    b"\xef\xbb\xbf{",
]
PLACE = st.floats(0, 1)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = st.sampled_from(
    [
        *("name", "description", "nickname", "tags", "assets", "extensions", "creator"),
        *("alternate_greetings", "character_version", "creator_notes_multilingual", "source"),
        *("character_book", "creation_date", "first_mes", "system_prompt"),
    ]
)


@pytest.mark.long
@pytest.mark.parametrize("name", TARGETS)
def test_starting_files_of_the_fuzz_targets_pass(name):
    seeds = list(TARGETS[name].seeds())
    for seed in seeds:
        TARGETS[name].check(seed)
    assert len(seeds) > 5


def test_fuzz_targets_start_with_readable_cards():
    for name in ("png", "charx"):
        for seed in TARGETS[name].seeds():
            assert load_card(seed).card.name


@given(start=st.sampled_from(STARTS), rest=st.binary(max_size=300), end=st.booleans())
def test_any_bytes_are_a_card_or_refused_in_one_line(start, rest, end):
    check_file(start + rest + (PIXELS + END) * end)


@given(
    content=st.sampled_from(CARRIERS),
    changes=st.lists(
        st.tuples(PLACE, st.binary(max_size=4), st.integers(0, 8)), min_size=1, max_size=6
    ),
)
def test_card_file_with_flipped_bytes_is_a_card_or_a_one_line_error(content, changes):
    made = bytearray(content)
    for where, new, gone in changes:
        at = int(where * len(made))
        made[at : at + gone] = new
    _is_card_or_refused(bytes(made))


@given(content=st.sampled_from(CARRIERS), start=PLACE, end=PLACE)
def test_part_of_a_card_file_is_read_or_refused_in_one_line(content, start, end):
    _is_card_or_refused(content[: int(end * len(content))])
    _is_card_or_refused(content[int(start * len(content)) :])


@given(one=st.sampled_from(CARRIERS), other=st.sampled_from(CARRIERS), cut=PLACE, on=PLACE)
def test_spliced_card_files_are_a_card_or_refused_in_one_line(one, other, cut, on):
    _is_card_or_refused(one[: int(cut * len(one))] + other[int(on * len(other)) :])


@given(content=st.sampled_from(CARRIERS), start=PLACE, length=PLACE, times=st.integers(2, 40))
def test_repeated_card_file_is_a_card_or_refused_in_one_line(content, start, length, times):
    at = int(start * len(content))
    piece = content[at : at + int(length * (len(content) - at))]
    _is_card_or_refused(content[:at] + piece * times + content[at + len(piece) :])


@given(kind=st.sampled_from([b"tEXt", b"zTXt", b"iTXt", b"acTL"]), data=st.binary(max_size=99))
def test_any_chunk_content_gives_a_card_or_a_one_line_error(kind, data):
    for keyword in (
        b"ccv3\0",
        b"ccv3\0\0",
        b"ccv3\0" + base64.b64encode(JSON),
        b"chara-ext-asset_",
    ):
        check_file(picture(part(kind, keyword + data)))
        check_file(a_picture(CARD, part(kind, data)))


@settings(deadline=None)  # no deadline: generating the first text takes a second
@given(names=st.lists(st.text(min_size=1, max_size=12), unique=True))
def test_any_member_names_give_a_card_or_a_one_line_error(names):
    plain = [name for name in names if name.isprintable() and name != "card.json"]
    check_file(an_archive(CARD, dict.fromkeys(plain, b"x")))


@settings(deadline=None)
@given(st.dictionaries(MEMBERS, VALUE, max_size=5), st.sampled_from(["chara_card_v2", "v3", None]))
def test_any_card_values_are_exported_unchanged_or_refused(given_fields, spec):
    card = {**card_data(**given_fields), **({} if spec == "v3" else {"spec": spec})}
    card = {**card["data"]} if spec is None else card
    check_text(json.dumps(card).encode())


@given(st.binary(max_size=60))
def test_cards_with_unusual_values_are_exported_unchanged_or_refused(chosen):
    check_file(as_json(chosen_card(Choices(chosen))))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["@@", "@@@", "@", "depth", "activate", " ", "1", "\n", "\r\n", "\r", ","])
        | st.text(max_size=4),
        max_size=14,
    )
)
def test_v2_copy_loses_decorators_and_nothing_else(pieces):
    check_decorators("".join(pieces).encode("utf-8", "replace"))


def test_card_file_with_repaired_checksums_is_read():
    broken_chunk = picture(text("ccv3", JSON, crc=1))
    archive = an_archive(CARD)
    at = archive.index(b"PK\x01\x02") + 16
    broken_member = archive[:at] + bytes(4) + archive[at + 4 :]
    for broken, mended in ((broken_chunk, with_sound_chunks), (broken_member, with_sound_members)):
        with pytest.raises(FormatError, match="CRC"):
            load_card(broken)
        assert load_card(mended(broken)).raw == CARD


def _is_card_or_refused(content: bytes) -> None:
    check_file(content)
    if content.startswith(SIGNATURE):
        check_file(with_sound_chunks(content))
    if content.startswith(b"PK"):
        check_file(with_sound_members(content))
