"""The command `ai`: status, the newest prompt, why, on and off."""

import pytest

from evennia_ai import models
from evennia_ai.commands.ai.status import work_lines
from evennia_ai.npc.background.queued import WorkStatus
from evennia_ai.store.work.queue import QueueStatus
from evennia_ai.store.work.workers import SeenWorker
from tests.commands.stage import on_screen, one_line

BAD_INPUT = {
    "ai nobody": "no NPC called 'nobody'",
    "ai pim": "has no mind",
    "ai oren = off": "takes no '='",
    "ai/of oren = x": "takes no '='",
    "ai/o oren": "several switches",
    "ai/offf oren": "There is no",
    "ai/ oren": "There is no",
    "ai/on": "Usage",
    "ai/context": "Usage",
    "ai/why oren =": "Usage",
    "ai/why nobody = mood": "no NPC called 'nobody'",
    "ai/why oren/0": "whole number from 1 on",
    "ai/why oren/1": "had no turn yet",
    "ai/history": "Usage",
    "ai/history oren = 2": "Usage",
    "ai/history oren/0": "whole number from 1 on",
    "ai/history oren/-1": "whole number from 1 on",
    "ai/history oren": "Nothing is recorded",
    "ai/replay oren": "Usage",
    "ai/replay oren = x": "whole number from 1 on",
    "ai/replay oren = 1": "had no turn yet",
    "ai/cache oren": "had no turn yet",
    "ai/cache oren = 1": "takes no '='",
}


@pytest.fixture
def model(stage, mood):
    """Let Oren answer Pim three times, with the component `mood` at depth 2."""
    stage.builds("component/depth mood = 2")
    with stage.model("Aye.", "At dusk.", "So be it.", "Yes?") as scripted:
        for said in ("Oren, are you there?", "Oren, when does the ferry sail?", "Thanks, Oren."):
            stage.player.at_say(said)
            stage.waited()
        yield scripted


def test_status_says_how_the_npc_is_doing(stage, model):
    told = stage.builds("ai oren")
    assert told.startswith(f"Oren (#{stage.npc.id}): on, idle, 0 waiting")
    assert "scripted" in told
    assert "conversations  1 in rooms" in told
    assert "last turn      3, done" in told


def test_status_without_an_endpoint_says_that_no_model_is_asked(stage):
    assert "offline responder (no model is asked)" in stage.builds("ai oren")


def test_status_without_a_card_says_how_to_give_one(stage):
    assert "none; card/assign <card> = Oren gives one" in stage.builds("ai oren")


def test_context_command_says_that_the_npc_had_no_turn_yet(stage):
    assert "had no turn yet" in stage.builds("ai/context oren")


def test_context_shows_the_component_between_the_right_messages(stage, model):
    told = stage.builds("ai/context oren = full")
    there = ("are you there", "Aye.", "component:mood", "when does the ferry", "At dusk.", "Thanks")
    assert sorted(there, key=told.index) == list(there)


def test_context_shows_bar_tokens_and_reasons(stage, model):
    told = stage.builds("ai/context oren = full")
    assert "tokens" in told
    assert "[C" in told
    assert "left out" in told
    assert "breakpoints" in told
    assert max(len(line) for line in told.splitlines()) <= 78


def test_context_shows_the_prompt_that_was_sent(stage, model):
    sent = [message.content for message in model.requests[-1].messages]
    assert any("The air is heavy." in content for content in sent)
    stage.builds("component/off mood")
    assert "component:mood" in stage.builds("ai/context oren = full")


def test_why_explains_one_component(stage, model):
    told = stage.builds("ai/why oren = mood")
    assert "component:mood" in told
    assert "The air is heavy." in told
    assert "depth 2" in told


def test_why_without_an_item_lists_the_texts_of_the_newest_prompt(stage, model):
    told = stage.builds("ai/why oren")
    assert "component:mood" in told
    assert told == stage.builds("ai/why oren/3")


def test_why_names_revision_and_author_of_a_component(stage, model):
    """S2-26: without a turn, `ai/why` explains the newest prompt as it was sent."""
    stage.builds("component/depth mood = 3")
    told = " ".join(stage.builds("ai/why oren = mood").split())
    assert "component mood of game, revision 2 by Mara" in told
    assert "revision 3" not in told


def test_why_before_the_first_turn_says_that_nothing_was_asked_yet(stage, mood):
    told = stage.builds("ai/why oren = mood")
    assert told.startswith("Oren had no turn yet; this is the prompt that it would get now.")
    assert "The air is heavy." in told


def test_why_tells_about_a_message_by_its_number(stage, model):
    assert stage.builds("ai/why oren = #1").startswith("message #1: ")


def test_why_of_an_unknown_item_suggests_similar_ones(stage, model):
    assert "component:mood" in stage.builds("ai/why oren = moood")


def test_why_with_spoken_words_lists_the_prompt_behind_them(stage, mood):
    with stage.model("The ferry sails at dusk.", "Aye.", "I sold the LAMP.", "Aye."):
        for said in ("Oren, when?", "Oren, truly?"):
            stage.player.at_say(said)
            stage.waited()
        stage.player.at_say("Where is the lamp?", receivers=[stage.npc], whisper=True)
        stage.waited()
    assert stage.builds("ai/why oren = ferry SAILS") == stage.builds("ai/why oren/1")
    assert "nothing here is called the lamp" in stage.builds("ai/why oren = the lamp")
    stage.builder.permissions.add("Admin")
    assert stage.builds("ai/why oren = the lamp") == stage.builds("ai/why oren/3")


def test_off_silences_the_npc_and_on_lets_it_answer(stage, model):
    asked = len(model.requests)
    stage.builds("ai/off oren")
    assert stage.npc.ai.enabled is False
    stage.player.at_say("Oren, are you there?")
    stage.waited()
    assert len(model.requests) == asked
    stage.builds("ai/on oren")
    stage.player.at_say("Oren, are you there?")
    stage.waited()
    assert len(model.requests) == asked + 1


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage):
    for typed, words in BAD_INPUT.items():
        assert words in one_line(stage.builds(typed)), typed
        assert stage.npc.ai.enabled is True, typed


def test_ai_screens_write_nothing(stage, model):
    def counted():
        return [m.objects.count() for m in (models.Record, models.Turn, models.Conversation)]

    before = counted()
    stage.builds("ai oren", "ai/context oren", "ai/why oren = mood", "component/preview oren")
    assert counted() == before


def test_words_of_players_are_shown_literally(stage, mood):
    hostile = "Oren, |rred|n |lclook|ltgo|le {x} $eval(1+1)"
    with stage.model("|rAye|n |lclook|ltgo|le", "Aye."):
        for said in (hostile, hostile):
            stage.player.at_say(said)
            stage.waited()
        sent = stage.sent(stage.builder, "ai/context oren", "component/preview oren")
    assert "{x} $eval(1+1)" in on_screen(sent)
    assert "|lc" not in on_screen(sent)
    assert "\x1b" not in sent


def worker(name: str, *, seen_at: float) -> SeenWorker:
    return SeenWorker(name=name, version=1, kinds="compact", begun_at=0.0, seen_at=seen_at)


def test_overview_shows_workers_waiting_jobs_and_failed_jobs():
    status = WorkStatus(
        queues=(QueueStatus(kind="compact", version=1, waiting=3, taken=1, waits_since=90.0),),
        workers=(worker("w1", seen_at=99.0), worker("w2", seen_at=-200.0)),
        poisoned=(("compact:481:3", "ValueError: no such |rhistory"),),
        over={"observe": 2},
    )

    told = " ".join(" ".join(work_lines(status, now=100.0)).split())

    assert told == (
        "Background work: 2 workers; w2 has given no sign for 5 m; compact 3 waiting, 1 taken;"
        " the oldest waits 10 s; observe done without 2 times. ! set aside: compact:481:3:"
        " ValueError: no such |rhistory"
    )
    assert [*work_lines(None, now=100.0)] == []


def test_overview_shows_an_unreachable_queue():
    lines = work_lines(WorkStatus(is_away=True, unsent=2), now=0.0)

    assert "the queue cannot be reached, 2 jobs kept here" in " ".join(lines)
