"""Facts, a note and a lorebook that stay in the history, and the screens that show them."""

import pytest
from django.test import override_settings

from tests.commands.stage import one_line

STAYING = override_settings(EVENNIA_AI_DYNAMIC_BLOCK="on_change")


def play(stage):
    """Let Oren answer Pim three times, with everything in a mode in which it stays."""
    stage.builds(
        "lore/create harbour/the ferry = ferry: The ferry sails at dusk.",
        "lore/assign harbour = game",
        "lore/mode harbour = frozen",
        "note oren = The tide is turning.",
        "note/every oren = 2",
        "note/mode oren = tail",
    )
    with STAYING, stage.model("At dusk.", "Aye.", "So be it."):
        for said in ("Oren, when does the ferry sail?", "Are you sure, Oren?", "Thanks, Oren."):
            stage.player.at_say(said)
            stage.waited()


@pytest.fixture(scope="module")
def _played(beforehand):
    beforehand(play)


@pytest.fixture
def played(stage, _played):
    """Return the stage after Oren has answered Pim."""
    with STAYING, stage.model() as scripted:
        yield scripted


LOOKS = (
    "ai/context oren",
    "ai/replay oren = 3",
    "ai/why oren/3",
    "ai/why oren/3 = harbour#0",
    "ai/why oren = harbour#0",
    "lore/why oren = harbour#0",
    "ai/history oren",
    "ai/cache oren",
)


def test_lasting_texts_are_before_their_event(stage, played):
    told = stage.builds("ai/context oren = full")
    shown = ("The ferry sails at dusk.", "Who speaks: Pim", "Pim: Oren, when does the ferry sail?")
    assert sorted(shown, key=told.index) == list(shown)
    assert told.index("The tide is turning.") < told.index("Pim: Are you sure, Oren?")
    assert [told.count(text) for text in (*shown, "The tide is turning.")] == [1, 1, 1, 1]


def test_each_prompt_begins_with_the_previous_prompt(stage, played):
    assert stage.builds("ai/cache oren").count("the previous prompt is a prefix") == 2


def test_lasting_texts_are_replayed_and_explained(stage, played):
    assert "the same bytes as were sent" in stage.builds("ai/replay oren = 3")
    told = " ".join(stage.builds("ai/why oren/3 = harbour#0").split())
    assert "is in message #2" in told
    assert "lorebook harbour, revision 2 by Mara" in told
    told = " ".join(stage.builds("ai/why oren/3 = note:note").split())
    assert "already in the history; due every 2 messages of role user, 1 were said since" in told


@pytest.mark.parametrize("typed", LOOKS)
def test_frozen_lore_is_hidden_by_its_lock(stage, played, typed):
    stage.builds("lore/lock harbour/the ferry = view:perm(Admin)")
    assert "sails at dusk" not in stage.builds(typed)


def test_clearing_a_note_keeps_what_was_said(stage, played):
    assert "has no note now" in one_line(stage.builds("note/remove oren"))
    prompt = stage.npc.ai.preview("And tomorrow, Oren?", stage.player)
    assert [m.content for m in prompt.messages].count("The tide is turning.") == 1
