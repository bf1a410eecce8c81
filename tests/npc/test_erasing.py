"""Erased words also disappear from the memory of the running game."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ReplayError
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.verifying import verify

SECRET = "the gold is under the mill"


@pytest.fixture
def erased(stage):
    """Return a stage on which a player whispered and then had the words erased."""
    stage.model_said = stage.talks_with("Under the mill, you say?", "Hello again.", "Aye.")
    stage.whispers(stage.anna, f"Oren, {SECRET}.")
    erase_private(str(stage.anna.id), by=trusted("Mira"))
    return stage


def test_next_prompt_contains_nothing_of_erased_words(erased):
    erased.whispers(erased.anna, "Oren, what did I tell you?")

    assert "mill" not in str(erased.model_said.requests[-1].messages)


def test_last_prompt_cannot_be_shown_after_its_words_were_erased(erased):
    with pytest.raises(ReplayError, match="erased on request"):
        erased.npc.ai.last_report()


def test_next_prompt_can_be_shown_and_contains_nothing_of_erased_words(erased):
    erased.whispers(erased.anna, "Oren, hello?")
    report = erased.npc.ai.last_report()

    assert "mill" not in str(report)
    assert report.shared_tokens is None


def test_conversation_of_the_room_goes_on_after_private_words_were_erased(erased):
    erased.says(erased.anna, "Oren, good evening.")

    assert erased.screen_of(erased.ben)[-1] == 'Oren says, "Hello again."'
    assert [verify(known) for known in conversations_of(erased.npc.ai.ref)] == [None, None]


def test_running_whispered_reply_is_not_said_after_the_erasure(stage, logged):
    stage.talks_with("Under the mill, you say?", delay_seconds=5)
    stage.whispers(stage.anna, f"Oren, {SECRET}.")
    erase_private(str(stage.anna.id), by=trusted("Mira"))
    stage.passes(6)

    assert not any("mill, you say" in line for line in stage.screen_of(stage.anna))
