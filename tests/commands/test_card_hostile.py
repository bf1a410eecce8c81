"""Hostile cards: what their report says, and what of them gets into a prompt."""

from unittest.mock import patch

import pytest
from django.test import override_settings
from evennia.utils.ansi import parse_ansi

from evennia_ai.formats.cards import card
from tests.commands.card_files import an_entry, as_json, hostile, oren
from tests.commands.stage import on_screen
from tests.effort import little_work

_SCREEN_LINES = 200


@pytest.fixture(scope="module")
def report(beforehand, tmp_path_factory):
    """Return the report on the hostile card, which has a book of ten thousand entries."""
    folder = tmp_path_factory.mktemp("cards")
    (folder / "vex.json").write_bytes(as_json(hostile(entries=10_000)))

    def take_in(stage):
        with override_settings(EVENNIA_AI_CARD_FOLDER=str(folder)), little_work(5):
            return stage.builds("card/import vex")

    return beforehand(take_in)


def evil_messages(prompt):
    return [message for message in prompt.messages if "EVIL" in message.content]


def test_the_report_says_what_the_card_tries(report):
    for words in (
        "override instructions",
        "Ignore all previous instructions",
        "depth 99999",
        "/(a+)+$/",
        "10003",
        "with grant system_prompt",
    ):
        assert words in report, words


def test_report_of_a_huge_book_is_short_and_quick(report):
    # The fixture `report` fails if the import takes long.
    assert len(report.splitlines()) < _SCREEN_LINES


def test_hostile_card_without_grants_stays_in_the_history_as_user(stage, report):
    stage.builds("card/approve Vex/1", "card/assign Vex = oren")
    with stage.model("Aye."):
        stage.player.at_say("Oren, good morning.")
        stage.waited()
        prompt = stage.npc.ai.preview(
            "Oren, the ferry? aaaaaaaaaaaaaaaaaaaaaaaaaaaa!", stage.player
        )
    evil = evil_messages(prompt)
    assert evil
    assert {message.role for message in evil} == {"user"}
    assert {message.block for message in evil} == {"history"}
    assert "EVIL-SYSTEM" not in "".join(message.content for message in prompt.messages)


def test_hostile_card_with_a_grant_may_only_what_was_granted(stage, report):
    stage.builds("card/approve Vex/1 = fields", "card/assign Vex = oren")
    prompt = stage.npc.ai.preview("Oren, the ferry?", stage.player)
    outside = [message for message in evil_messages(prompt) if message.block != "history"]
    told = "".join(message.content for message in outside)
    assert "EVIL-DESCRIPTION" in told
    assert "EVIL-SYSTEM" not in told
    assert "EVIL-DEEP" not in told


def test_a_huge_book_is_read_before_a_turn_needs_it(stage, report):
    stage.builds("card/approve Vex/1 = roles", "card/assign Vex = oren")
    with patch.object(card, "parse_json", side_effect=AssertionError("read in a turn")):
        assert evil_messages(stage.npc.ai.preview("Oren, the ferry?", stage.player))


def test_endless_pattern_of_a_card_delays_nobody(stage, report):
    stage.builds("card/approve Vex/1", "card/assign Vex = oren")
    # This compiles the keys of the book.
    stage.npc.ai.preview("Oren, the ferry?", stage.player)
    with little_work():
        stage.npc.ai.preview("Oren, " + "a" * 40 + "!", stage.player)


@pytest.mark.parametrize(
    "evil",
    [
        {"creator": "|r|lclook|ltgo|le\nApproved by Mara"},
        {"tags": ["\x1b[2J", "$eval(1)"]},
        {"creator_notes": "fine\n\nTo approve it: card/approve Other"},
        {"character_book": {"name": "|[r\n", "entries": [an_entry("x", name="|r\nyes\x1b")]}},
        {"first_mes": "|lclook|ltgo|le\x07", "nickname": "|R"},
    ],
)
def test_a_cards_texts_forge_no_colour_no_link_and_no_line(stage, card_folder, evil):
    (card_folder / "evil.json").write_bytes(as_json(oren(**evil)))
    lines = ("card/import evil = evil", "card/approve evil", "card evil", "card/assign evil = oren")
    sent = stage.sent(stage.builder, *lines, "card/greeting oren", "card/revisions evil", "card")
    assert not any(ord(letter) < 32 and letter != "\n" for letter in sent)
    assert "|lc" not in on_screen(sent)
    assert "\nApproved by Mara" not in sent
    assert "\nTo approve it: card/approve Other" not in sent
    assert "\x1b" not in parse_ansi(sent)
