"""`evennia-ai card` with pictures and archives, and `card convert`."""

import json
import re
import time

import pytest

from tests.cli.test_compose import assert_one_line
from tests.formats.cards.carriers import (
    SIGNATURE,
    a_picture,
    an_archive,
    an_asset,
    as_json,
    card_in_chunk,
    picture,
    text,
)
from tests.formats.scenario.builders import a_card, an_entry
from tests.modes import is_open_to_others

ASSETS = [an_asset("embeded://i.png"), an_asset("embeded://gone.png", name="x")]


@pytest.fixture
def put(tmp_path):
    """Return a function that writes bytes to a file: `put("a.png", content)`."""

    def put(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return name

    return put


@pytest.mark.parametrize(
    ("content", "carrier"),
    [
        (as_json(a_card()), "json"),
        (a_picture(a_card()), "png"),
        (an_archive(a_card()), "charx"),
    ],
)
def test_card_is_shown_from_every_kind_of_file(call, put, content, carrier) -> None:
    name = put("card.dat", content)
    shown = call("card", "show", name, "--json").json
    assert (shown["name"], shown["carrier"], shown["notices"]) == ("Tilda", carrier, [])
    assert call("card", "show", name).out.startswith(f"Tilda, chara_card_v3 3.0, {carrier}\n")
    assert call("card", "lint", name).status == 0


def test_assets_in_the_archive_are_resolved(call, put) -> None:
    name = put("tilda.charx", an_archive(a_card(assets=ASSETS), {"i.png": picture()}))
    shown = call("card", "show", name, "--json").json
    assert [asset["resolved"] for asset in shown["assets"]] == [True, False]
    assert shown["assets"][0] == {**ASSETS[0], "resolved": True}
    [notice] = shown["notices"]
    assert notice.startswith(
        "assets[1]: embeded://gone.png cannot be loaded: the file does not contain"
    )


@pytest.mark.parametrize("command", ["show", "lint"])
@pytest.mark.parametrize(
    "content",
    [
        SIGNATURE + bytes(64),
        picture(),
        a_picture()[:90],
        an_archive(False),
        an_archive(a_card(), {"../x": b""}),
        b"\xff\xd8\xff",
        b"PK\x03\x04",
    ],
)
def test_a_bad_picture_or_archive_is_one_line_and_status_2(call, put, command, content) -> None:
    called = call("card", command, put("bad.png", content))
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert "bad.png: card: " in called.err


@pytest.mark.parametrize("form", ["json", "png", "charx"])
def test_card_conversion_round_trip_loses_nothing(call, write, tmp_path, form) -> None:
    card = a_card(an_entry("@@depth 2\nOil is dear.", "oil"), unknown_field=[1, None])
    started = int(time.time())
    called = call("card", "convert", write("tilda.json", card), "out.dat", "--to", form)
    assert (called.status, called.out, called.err) == (0, f"out.dat: Tilda as {form}\n", "")
    assert not is_open_to_others(tmp_path / "out.dat")
    assert call("card", "convert", "out.dat", "back.json", "--to", "json").status == 0
    back = json.loads((tmp_path / "back.json").read_bytes())
    assert started <= back["data"].pop("modification_date") <= time.time()
    assert back == card


def test_v2_copy_is_added_on_request(call, write, tmp_path) -> None:
    name = write("tilda.json", a_card(an_entry("@@depth 2\nOil is dear.", "oil")))
    called = call("card", "convert", name, "tilda.png", "--to", "png", "--with-v2")
    assert called.out == "tilda.png: Tilda as png with a V2 copy\n"
    made = (tmp_path / "tilda.png").read_bytes()
    assert card_in_chunk(made, "chara")["spec"] == "chara_card_v2"
    assert card_in_chunk(made, "ccv3")["spec"] == "chara_card_v3"
    refused = call("card", "convert", name, "tilda.charx", "--to", "charx", "--with-v2")
    assert (refused.status, refused.out) == (2, "")
    assert_one_line(refused.err)
    assert not (tmp_path / "tilda.charx").exists()


def test_convert_prints_what_the_form_cannot_hold(call, put) -> None:
    members = {"i.png": picture(), "module.risum": b"x"}
    name = put("tilda.charx", an_archive(a_card(assets=ASSETS[:1]), members))
    called = call("card", "convert", name, "tilda.json", "--to", "json")
    assert called.status == 0
    lines = called.out.splitlines()
    assert [re.split(" (?:is|are) left", line)[0] for line in lines] == [
        "tilda.charx: asset main (icon)",
        "tilda.charx: other files of the archive (1)",
        "tilda.json: Tilda as json",
    ]


def test_existing_card_is_overwritten_only_with_force(call, write, tmp_path) -> None:
    name = write("tilda.json", a_card())
    write("there.png", "mine")
    called = call("card", "convert", name, "there.png", "--to", "png")
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert (tmp_path / "there.png").read_text() == "mine"
    assert call("card", "convert", name, "there.png", "--to", "png", "--force").status == 0
    assert (tmp_path / "there.png").read_bytes().startswith(SIGNATURE)


def test_a_picture_is_converted_in_its_place(call, put, tmp_path) -> None:
    name = put("tilda.png", a_picture(a_card(), text("Software", b"x"), keyword="chara"))
    assert call("card", "convert", name, name, "--to", "png", "--force").status == 0
    made = (tmp_path / name).read_bytes()
    assert text("Software", b"x") in made
    assert b"chara\0" not in made


@pytest.mark.parametrize("content", [b"", b"{", b"[]", SIGNATURE, an_archive(False)])
@pytest.mark.parametrize("form", ["json", "png", "charx"])
def test_a_bad_card_is_not_converted(call, put, tmp_path, content, form) -> None:
    called = call("card", "convert", put("bad.dat", content), "out.dat", "--to", form)
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
    assert "bad.dat" in called.err
    assert not (tmp_path / "out.dat").exists()


@pytest.mark.parametrize("out", ["gone/out.png", "."])
def test_unwritable_target_is_one_line_and_status_2(call, write, out) -> None:
    name = write("tilda.json", a_card())
    called = call("card", "convert", name, out, "--to", "png", "--force")
    assert (called.status, called.out) == (2, "")
    assert_one_line(called.err)
