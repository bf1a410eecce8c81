"""The picture of a card is its main icon, in an archive and in a PNG file."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.formats.cards.card import Asset
from evennia_ai.formats.cards.exporting import dump_card, export_losses
from evennia_ai.formats.cards.loading import load_card
from tests.formats.cards.builders import card_data
from tests.formats.cards.carriers import a_picture, an_archive, an_asset, as_json, picture

NOW = 1_800_000_000
CARD = card_data(tags=["sea"])
PICTURE_ADDRESS = "embeded://assets/icon/images/main.png"
JPEG = b"\xff\xd8\xff\xe0 pixels \xff\xd9"


def dumped(content: bytes, form: Any, **options: Any) -> bytes:
    return dump_card(load_card(content), form, modified_at=NOW, **options)


def _in_a_picture(asset: Asset) -> Asset:
    return replace(asset, uri="ccdefault:") if asset.uri == PICTURE_ADDRESS else asset


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, [an_asset(PICTURE_ADDRESS)]),
        ([], [an_asset(PICTURE_ADDRESS)]),
        ([an_asset("ccdefault:", ext="x", own=1)], [an_asset(PICTURE_ADDRESS, own=1)]),
        (
            [an_asset("ccdefault:", name="b"), an_asset("ccdefault:")],
            [an_asset("ccdefault:", name="b"), an_asset(PICTURE_ADDRESS)],
        ),
        (
            [an_asset("ccdefault:", type="background")],
            [an_asset("ccdefault:", type="background"), an_asset(PICTURE_ADDRESS)],
        ),
        ([an_asset("https://x.invalid/a.png")], [an_asset("https://x.invalid/a.png")]),
    ],
)
def test_picture_becomes_the_main_icon_of_an_archive_and_is_the_picture_of_a_png_again(
    before, after
):
    card = card_data(**({} if before is None else {"assets": before}))
    made = load_card(dumped(a_picture(card), "charx"))
    assert (made.raw["data"]["assets"], made.picture) == (after, picture())
    back = load_card(dump_card(made, "png", modified_at=NOW))
    assert back.card.assets == tuple(map(_in_a_picture, made.card.assets))
    assert (back.notices, export_losses(made, "png")) == ((), ())


def test_picture_of_an_archive_that_is_no_png_file_is_exported_as_the_main_icon():
    found = load_card(dumped(an_archive(CARD, before=JPEG), "charx"))
    assert [(each.asset.uri, each.asset.ext, each.content) for each in found.assets] == [
        ("embeded://assets/icon/images/main.jpeg", "jpeg", JPEG)
    ]


def test_given_picture_becomes_the_main_icon_of_an_archive():
    for content in (as_json(CARD), dumped(an_archive(CARD, before=JPEG), "charx")):
        made = load_card(dumped(content, "charx", picture=a_picture(card_data(tags=[]))))
        assert [each.content for each in made.assets] == [picture()]
