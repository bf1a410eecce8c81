"""Texts that lore may scan besides the conversation: the card's and the room's."""

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.formats.cards.card import Card
from evennia_ai.npc.inputs.gather import scanned_sources
from evennia_ai.npc.views.view import card_texts

CARD = Card(
    name="Oren",
    description="{{char}} rows the ferry for {{user}}.",
    personality="Gruff.",
    scenario="",
    creator_notes="Play him slow.",
    extensions={"depth_prompt": {"prompt": "<BOT> hums.", "depth": 4}},
)


def scanned(npc, card=CARD):
    values = {"char": "Oren", "user": "Anna"}
    return scanned_sources(
        npc, card_texts(card), values=values, dice=Dice(turn="1", conversation="1")
    )


def test_card_texts_are_expanded_and_empty_ones_left_out(stage):
    assert scanned(stage.npc) == {
        "char_description": "Oren rows the ferry for Anna.",
        "char_personality": "Gruff.",
        "char_depth_prompt": "Oren hums.",
        "creator_notes": "Play him slow.",
    }


def test_room_description_is_scanned_as_plain_text(stage):
    stage.room.db.desc = "|gNets|n hang\nover |lclook|ltthe quay|le."

    assert scanned(stage.npc, None) == {"room": "Nets hang over the quay."}


def test_no_room_is_scanned_when_npc_has_no_location(stage):
    stage.npc.location = None

    assert scanned(stage.npc, None) == {}


def test_room_description_that_is_not_text_is_left_out(stage):
    stage.room.db.desc = ["Nets"]

    assert scanned(stage.npc, None) == {}


def test_invalid_depth_prompt_is_left_out(stage):
    card = Card(name="Oren", extensions={"depth_prompt": {"prompt": 7}})

    assert scanned(stage.npc, card) == {}


def test_cached_scan_sources_make_no_query(stage, no_queries):
    scanned(stage.npc)

    with no_queries():
        scanned(stage.npc)
