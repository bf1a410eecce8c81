"""The checks after a compaction, and failures during one, which change nothing."""

import json

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc.upkeep import compacting
from evennia_ai.store.authored.components import update
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.history.model_requests import newest_attempt
from tests.npc.scripted_games import an_entry
from tests.npc.upkeep.compacting_games import (
    BEGUN,
    FULL,
    GOOD,
    SMALL,
    Slow,
    Talker,
    goes_on,
    history_of,
    of_kind,
    room_of,
    rules,
    segment_of,
)


@pytest.fixture
def stage(stage, begun):
    """Return the stage after Anna's first lines."""
    return begun(stage)


@pytest.fixture
def waiting(stage):
    """Let a turn wait for a summary. Return the model that has to write it."""
    model = Slow()
    stage.install(model, compaction=rules(), **SMALL)
    goes_on(stage, FULL)
    assert len(model.asked) == 1
    return model


def replied(stage) -> int:
    return sum(line.startswith("Oren says") for line in stage.screen_of(stage.anna))


def after(stage, model, summary=GOOD) -> None:
    """Give the summary, and let the game go on for a moment."""
    model.summarises(summary)
    stage.passes()


def another_process_says(where, text: str) -> None:
    """Write a record of which this process knows nothing."""
    newest = models.Record.objects.filter(conversation_id=where.id).order_by("-pk")[0]
    models.Record.objects.create(
        conversation_id=where.id,
        segment=newest.segment,
        seq=newest.seq + 1,
        kind="user",
        role="user",
        body=text,
        content_sha256="x",
        sha256="x",
        messages=newest.messages + 1,
        users=newest.users + 1,
        replies=newest.replies,
        created_at=newest.created_at,
    )


@pytest.mark.req("S2-21")
def test_prompt_after_a_compaction_is_refused_when_it_has_no_room(stage, waiting, logged):
    update("system_prompt", by=trusted("builder"), content="word " * 3000)
    after(stage, waiting)

    assert segment_of(stage) == 2
    assert "the prompt does not fit" in " ".join(logged)
    assert "lost in thought" in stage.screen_of(stage.anna)[-1]


@pytest.mark.req("S2-21", "S2-22")
def test_no_model_is_asked_to_speak_after_a_compaction_without_effect(stage, waiting, logged):
    update("system_prompt", by=trusted("builder"), content="word " * 650)
    number = BEGUN + len(waiting.spoke)
    after(stage, waiting)
    attempt = newest_attempt(room_of(stage))

    assert segment_of(stage) == 2
    assert "no model is asked: the history was compacted" in " ".join(logged)
    assert (attempt.result, attempt.breaker.opened_at is not None) == ("thrash", True)
    assert len(waiting.asked) == 1
    questions = [request.question for request in waiting.spoke]
    assert f"Oren, line {number}: was the weather grey on day {number}?" not in questions
    lines = sum(question.count("Oren, line") for question in questions)
    assert lines == FULL - BEGUN - 1  # the turns that waited for it ask their models
    assert sum("lost in thought" in line for line in stage.screen_of(stage.anna)) == 1


@pytest.mark.req("S2-22")
def test_no_compaction_is_tried_for_some_turns_after_one_without_effect(stage, waiting):
    update("system_prompt", by=trusted("builder"), content="word " * 650)
    after(stage, waiting)
    before = replied(stage)
    stage.says(stage.anna, "Oren, and now?")

    assert (len(waiting.asked), segment_of(stage)) == (1, 2)
    assert replied(stage) == before + 1


def test_record_written_by_another_process_meanwhile_is_kept(stage, waiting):
    another_process_says(room_of(stage), "From elsewhere.")
    after(stage, waiting)

    assert segment_of(stage) == 2
    assert "From elsewhere." in history_of(stage)


@pytest.mark.req("S2-20")
def test_compaction_changes_nothing_when_the_summary_cannot_be_committed(
    stage, waiting, logged, monkeypatch
):
    def refuse(*_, **__):
        raise StoreError("the disk is full")

    old, before = history_of(stage), replied(stage)
    with monkeypatch.context() as broken:
        broken.setattr(compacting, "begin_segment", refuse)
        after(stage, waiting)

    assert (segment_of(stage), history_of(stage)[: len(old)]) == (1, old)
    assert of_kind(stage, RecordKind.USAGE) == []
    assert "the disk is full" in " ".join(logged)
    assert replied(stage) > before


def test_summary_request_that_cannot_be_committed_is_not_sent(stage, logged, monkeypatch):
    def refuse(*_, **__):
        raise StoreError("the disk is full")

    talker = Talker(GOOD)
    stage.talks_with(talker, compaction=rules(), **SMALL)
    monkeypatch.setattr(compacting.model_requests, "ask_for_summary", refuse)
    goes_on(stage, FULL)

    assert (talker.asked, segment_of(stage)) == ([], 1)
    assert replied(stage) == FULL


def test_frozen_lore_in_a_summarised_part_is_sent_again_when_it_activates(stage):
    book = {
        "entries": [an_entry("lantern", "The lantern burns whale oil.")],
        "extensions": {"evennia_ai": {"mode": "frozen"}},
    }
    save_book("harbour", json.dumps(book), by=trusted("builder"))
    LOREBOOKS.assign("harbour", GAME, by=trusted("builder"))
    model = stage.talks_with(Talker(GOOD), compaction=rules(keep_messages=0), **SMALL)
    stage.says(stage.anna, "Oren, the lantern?")
    goes_on(stage, FULL)
    assert segment_of(stage) == 2
    summarised = [m.content for m in model.requests[-1].messages]
    stage.says(stage.anna, "Oren, the lantern?")
    woken = [m.content for m in model.requests[-1].messages]

    assert [text for text in summarised if "whale oil" in text] == []
    assert len([text for text in woken if "whale oil" in text]) == 1
