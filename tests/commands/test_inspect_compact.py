"""`ai/compact`, and what the status says about compaction."""

import pytest
from django.test import override_settings

from evennia_ai.store.history import conversations
from evennia_ai.store.history.windows import windows
from tests.commands.stage import one_line

SUMMARY = "Pim asked Oren about the ferry at length.\nOren promised Pim a seat."
RULES = {"keep_messages": 4, "summary_tokens": 60, "most_summary_tokens": 100}
BAD_INPUT = {
    "ai/compact": "Usage: ai/compact <npc>",
    "ai/compact oren = 2": "takes no '='",
    "ai/compact nobody": "no NPC called 'nobody'",
    "ai/comp oren = 2": "takes no '='",
    "ai/co oren": "several switches",
}


@pytest.fixture
def long_talk(stage):
    """Let Pim and Oren speak for a while. The model's next reply is a summary."""
    with override_settings(EVENNIA_AI_COMPACTION=RULES):
        with stage.model(
            *(f"Answer {n}, as true as the tide." for n in range(8)), SUMMARY
        ) as model:
            for number in range(8):
                stage.plays(f"say Oren, question {number}: is the ferry late on day {number}?")
                stage.waited()
            yield model


def room_of(stage):
    (where,) = conversations.conversations_of(stage.npc.ai.ref)
    return where


@pytest.mark.parametrize(("line", "problem"), BAD_INPUT.items())
def test_bad_input_gets_one_clear_line(stage, line, problem):
    assert problem in one_line(stage.builds(line))


def test_compact_summarises_the_conversation_of_the_room(stage, long_talk):
    told = one_line(stage.builds("ai/compact oren"))

    assert "12 messages" in told
    assert "summary of the model; the 4 after them stay" in told
    assert windows(room_of(stage).id).end.segment == 2


def test_compacted_messages_stay_in_the_history(stage, long_talk):
    stage.builds("ai/compact oren")

    assert "question 0" in stage.builds("ai/history oren/2")
    assert "summary" in stage.builds("ai/history oren")


def test_compact_says_why_nothing_is_gained(stage, long_talk):
    stage.builds("ai/compact oren")
    told = one_line(stage.builds("ai/compact oren"))

    assert told.startswith("Nothing was summarised for Oren: ")
    assert windows(room_of(stage).id).end.segment == 2


def test_compact_keeps_a_short_conversation_and_says_how_much_always_stays(stage):
    with stage.model("Good evening."):
        stage.plays("say Oren, good evening.")
        stage.waited()
    told = one_line(stage.builds("ai/compact oren"))

    assert "every message belongs to the part that is kept" in told
    assert "the newest" in told and "are always kept unchanged" in told
    assert " 0 messages" not in told


def test_a_room_in_which_nothing_was_said_has_nothing_to_compact(stage):
    with stage.model():
        assert "no conversation in this room" in one_line(stage.builds("ai/compact oren"))


def test_compact_is_refused_while_the_npc_answers(stage, long_talk):
    stage.plays("say Oren, one more?")

    assert "try again in a moment" in one_line(stage.builds("ai/compact oren"))


def test_compact_is_refused_to_players(stage, long_talk):
    stage.plays("ai/compact oren")

    assert windows(room_of(stage).id).end.segment == 1


def test_status_says_when_and_how_it_was_compacted(stage, long_talk):
    assert "compaction" not in stage.builds("ai oren")
    stage.builds("ai/compact oren")

    assert "compacted by a model " in " ".join(stage.builds("ai oren").split())
