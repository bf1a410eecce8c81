"""Memories compared by meaning, with a scripted model of two-dimensional vectors."""

import logging
from typing import Any

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.engine.memory.recalling import MemorySettings
from evennia_ai.npc.inputs import meanings as room
from evennia_ai.npc.inputs.meanings import Meanings
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.services.llm.sentence_model import SentenceModelError
from evennia_ai.store.history import turns
from tests.absent import need
from tests.engine.memory.builders import a_memory
from tests.npc.inputs.test_reminding import learn

pytestmark = pytest.mark.extra

MARE = a_memory("Corvin sold the mare.", id=1)
RAIN = a_memory("It rains.", id=2)
ABOUT_ANIMALS = ("mare", "horse", "mount")


class Scripted:
    """A model with two vectors: for texts about animals and for others. `read` lists its texts."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def vectors(self, texts: Any) -> list[bytes]:
        self.read += texts
        return [self._vector(text).astype("<f4").tobytes() for text in texts]

    def _vector(self, text: str) -> Any:
        import numpy as np

        return np.array([1.0, 0.0] if any(word in text for word in ABOUT_ANIMALS) else [0.0, 1.0])


@pytest.fixture
def model() -> Scripted:
    need("numpy", undone="no memory is compared by meaning")
    return Scripted()


def near(meanings: Meanings, said: str, *memories: Any) -> Any:
    found: list[Any] = []
    Deferred.fromCoroutine(meanings.near(said, memories)).addCallback(found.append)
    return found[0]


def test_memories_without_vectors_are_compared_only_from_the_next_turn(model):
    meanings = Meanings(in_thread=maybeDeferred, model=lambda: model)

    assert near(meanings, "Who has a horse?", MARE, RAIN) == ()
    assert near(meanings, "Who has a horse?", MARE, RAIN) == ((1, 1.0), (2, 0.0))


def test_model_reads_each_memory_once(model):
    meanings = Meanings(in_thread=maybeDeferred, model=lambda: model)
    for _ in range(3):
        near(meanings, "Who has a horse?", MARE, RAIN)

    assert model.read.count(MARE.text) == model.read.count(RAIN.text) == 1


def test_least_recently_used_vectors_are_dropped(model, monkeypatch):
    monkeypatch.setattr(room, "MOST_KEPT", 1)
    meanings = Meanings(in_thread=maybeDeferred, model=lambda: model)
    near(meanings, "horse", MARE)
    near(meanings, "horse", RAIN)

    assert near(meanings, "horse", RAIN) == ((2, 0.0),)
    assert near(meanings, "horse", MARE) == ()


def test_missing_model_is_logged_and_no_memory_is_compared(caplog):
    def missing() -> Any:
        raise SentenceModelError("numpy is not installed")

    with caplog.at_level(logging.WARNING):
        assert near(Meanings(in_thread=maybeDeferred, model=missing), "horse", MARE) == ()
    assert "recalled by their words only: numpy is not installed" in caplog.text


def test_model_reads_nothing_without_memories_or_words(model):
    meanings = Meanings(in_thread=maybeDeferred, model=lambda: model)

    assert near(meanings, "horse") == near(meanings, "  ", MARE) == ()
    assert model.read == []


@pytest.fixture
def talking(stage, model, monkeypatch):
    monkeypatch.setattr("evennia_ai.services.endpoints.sentence_model", lambda: model)
    stage.talks_with(lambda request: "Aye.", memory=MemorySettings(by_meaning=True))
    return stage


def test_memory_is_recalled_by_meaning_without_a_common_word(talking):
    learn(talking, "Corvin sold the mare.")
    for number in range(3):
        talking.says(talking.anna, f"Oren, who has a horse? {number}")

    verdicts = talking.npc.ai.last_report()
    assert "meaning" in str(verdicts)


def test_past_turn_is_composed_again_with_its_recorded_closeness(talking, model):
    for number in range(4):
        learn(talking, f"The mare number {number} is sold.", importance=number + 1)
    for number in range(2):
        talking.says(talking.anna, f"Oren, who has a horse? {number}")
    turn = turns.last_turn(talking.npc.ai.ref)

    assert turn.manifest.inputs["memories"]["near"]
    past = PastReader().inputs(turn)
    assert dict(past.inputs.near) == dict(map(tuple, turn.manifest.inputs["memories"]["near"]))
    assert compose_again(turn, PastReader()).sha256 == turn.manifest.sha256


def test_model_reads_nothing_when_recall_by_meaning_is_off(stage, model, monkeypatch):
    monkeypatch.setattr("evennia_ai.services.endpoints.sentence_model", lambda: model)
    stage.talks_with(lambda request: "Aye.")
    learn(stage, "Corvin sold the mare.")
    stage.says(stage.anna, "Oren, who has a horse?")

    assert model.read == []
    assert turns.last_turn(stage.npc.ai.ref).manifest.inputs["memories"]["near"] == []
