"""Several quick lines of one speaker: the NPC gives one answer to all of them."""

from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.history import control, past_turns, turns
from evennia_ai.store.history.conversations import conversations_of

GATHER = 1.0
THREE = ("Oren, good evening.", "When does the ferry leave?", "And who rows it?")


def prompted(request: Any) -> list[tuple[str, str]]:
    """Return the lines of the conversation in a prompt."""
    lines = [(one.role, line) for one in request.messages for line in one.content.splitlines()]
    return [(role, line) for role, line in lines if role == "assistant" or line.startswith("Anna:")]


def spoken_by(stage: Any, name: str) -> list[str]:
    return [line for line in stage.screen_of(stage.ben) if line.startswith(f"{name} says")]


def lines_of(stage: Any, speaker: Any, texts: tuple[str, ...], *, every_seconds: float) -> None:
    for text in texts:
        stage.says(speaker, text)
        stage.passes(every_seconds)


@pytest.fixture
def model(stage: Any) -> Any:
    return stage.talks_with(lambda _: "Aye.", gather_seconds=GATHER)


@pytest.fixture
def slow(stage: Any) -> Any:
    return stage.talks_with(lambda _: "Aye.", delay_seconds=10.0, gather_seconds=GATHER)


@pytest.mark.parametrize(
    ("every_seconds", "texts", "questions"),
    [
        (0.0, THREE, [" ".join(THREE)]),
        (0.9, THREE, [" ".join(THREE)]),
        (1.1, THREE, list(THREE)),
        (0.5, tuple(f"Oren, {n}?" for n in range(9)), ["0 1 2 3 4 5", "6 7 8"]),
    ],
)
def test_lines_within_the_gather_time_get_one_answer_but_not_without_end(
    stage: Any,
    model: Any,
    every_seconds: float,
    texts: tuple[str, ...],
    questions: list[str],
) -> None:
    lines_of(stage, stage.anna, texts, every_seconds=every_seconds)
    stage.passes(4 * GATHER)
    asked = [request.question for request in model.requests]
    numbers = [" ".join(c for c in one if c.isdigit()) for one in asked]
    assert questions in (asked, numbers)
    assert len(spoken_by(stage, "Oren")) == len(questions)


def test_joined_lines_are_in_the_prompt_in_order_and_each_is_recorded(
    stage: Any, model: Any
) -> None:
    lines_of(stage, stage.anna, THREE, every_seconds=0.2)
    stage.passes(GATHER)
    assert prompted(model.requests[0])[-3:] == [("user", f"Anna: {text}") for text in THREE]
    assert [body for _, name, body in stage.records() if name == "Anna"] == list(THREE)


def test_lines_said_while_the_npc_answers_get_one_answer_after_it(stage: Any, slow: Any) -> None:
    stage.says(stage.anna, THREE[0])
    stage.passes(GATHER)
    lines_of(stage, stage.anna, THREE[1:], every_seconds=3.0)
    stage.passes(5.0)
    stage.passes(10.0)
    assert [request.question for request in slow.requests] == [THREE[0], " ".join(THREE[1:])]
    assert prompted(slow.requests[1])[-4:] == [
        ("user", f"Anna: {THREE[0]}"),
        ("assistant", "Aye."),
        ("user", f"Anna: {THREE[1]}"),
        ("user", f"Anna: {THREE[2]}"),
    ]


def test_lines_of_other_speakers_and_whispers_get_answers_of_their_own(
    stage: Any, slow: Any
) -> None:
    stage.says(stage.anna, "Oren, one?")
    stage.says(stage.ben, "Oren, two?")
    stage.whispers(stage.anna, "Three?")
    stage.says(stage.anna, "Oren, four?")
    stage.whispers(stage.anna, "Five?")
    for _ in range(4):
        stage.passes(11.0)
    assert sorted(request.question for request in slow.requests) == [
        "Oren, one? Oren, four?",
        "Oren, two?",
        "Three? Five?",
    ]


def test_other_speakers_answer_has_no_line_that_still_waits(stage: Any, slow: Any) -> None:
    stage.says(stage.anna, "Oren, hello?")
    stage.passes(GATHER)
    stage.says(stage.ben, "Oren, two?")
    stage.says(stage.anna, "Oren, three?")
    stage.says(stage.anna, "Oren, four?")
    for _ in range(3):
        stage.passes(11.0)
    assert [request.question for request in slow.requests] == [
        "Oren, hello?",
        "Oren, two?",
        "Oren, three? Oren, four?",
    ]
    said = [text for _, text in prompted(slow.requests[1])]
    assert not [text for text in said if "three" in text or "four" in text]


def test_idle_npc_does_not_wait_for_lines_with_0_seconds(stage: Any) -> None:
    model = stage.talks_with(lambda _: "Aye.", gather_seconds=0.0)
    stage.says(stage.anna, "Oren?")
    assert len(model.requests) == 1


def test_second_named_npc_answers_after_the_first_answered_two_lines_at_once(
    stage: Any, slow: Any
) -> None:
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    stage.says(stage.anna, "Oren, Brida, good evening.")
    stage.says(stage.anna, "Oren, are you there?")
    for _ in range(4):
        stage.passes(10.0)
    assert brida.key == "Brida"
    assert [request.speaker for request in slow.requests] == ["Oren", "Brida"]


@pytest.mark.parametrize("speaks", ["at once", "while the NPC answers"])
def test_joined_turn_is_composed_again_to_the_byte(stage: Any, slow: Any, speaks: str) -> None:
    stage.says(stage.anna, THREE[0])
    stage.passes(GATHER if speaks == "while the NPC answers" else 0.0)
    lines_of(stage, stage.anna, THREE[1:], every_seconds=0.2)
    for _ in range(3):
        stage.passes(10.0)
    turn = turns.last_turn(stage.npc.ai.ref)
    assert turn is not None
    assert len(turn.manifest.inputs["history"]["joined"]) == (2 if speaks == "at once" else 1)
    assert past_turns.replay_stored_turn(turn).problem == ""
    assert compose_again(turn, PastReader()).sha256 == turn.manifest.sha256


def undo(stage: Any) -> list[str]:
    (where,) = conversations_of(stage.npc.ai.ref)
    (taken,) = control.undo_exchanges(where, 1, by=trusted("Builder"))
    return [record.body for record in taken.records]


def test_undo_takes_back_all_lines_that_one_answer_was_for(stage: Any, slow: Any) -> None:
    stage.says(stage.anna, THREE[0])
    stage.passes(GATHER)
    lines_of(stage, stage.anna, THREE[1:], every_seconds=1.0)
    for _ in range(2):
        stage.passes(10.0)
    assert undo(stage) == [*THREE[1:], "Aye."]
    assert undo(stage) == [THREE[0], "Aye."]


def test_joined_lines_are_not_answered_again_after_a_restart(stage: Any, model: Any) -> None:
    lines_of(stage, stage.anna, THREE, every_seconds=0.1)
    stage.passes(GATHER)
    assert past_turns.unanswered_words(since=0.0, before=1e12) == []
    stage.says(stage.anna, "One more thing.")
    left = past_turns.unanswered_words(since=0.0, before=1e12)
    assert [record.body for _, record in left] == ["One more thing."]


def test_gesture_is_shown_once_for_joined_lines(stage: Any) -> None:
    stage.talks_with(lambda _: "Aye.", delay_seconds=30.0, gather_seconds=2.0, thinking_seconds=4.0)
    lines_of(stage, stage.anna, THREE, every_seconds=1.0)
    stage.passes(3.0)
    stage.passes(20.0)
    assert stage.screen_of(stage.ben).count("Oren thinks it over.") == 1
