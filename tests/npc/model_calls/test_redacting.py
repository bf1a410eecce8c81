"""Watchers learn of a protected call without its words."""

import pytest

from evennia_ai.engine.errors import ModelRefused
from evennia_ai.npc.model_calls.calls import ProtectedCallError
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.model_calls.watching import Watcher
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import ChatMessage, ChatRequest

CANARY = "Mandragora"


class Ears(Watcher):
    def __init__(self) -> None:
        self.heard: list[object] = []

    def asked(self, call, request, prompt):
        self.heard += [request, prompt]

    def answered(self, call, reply, row):
        self.heard += [reply, row]

    def failed(self, call, error, row):
        self.heard += [error, str(error), row]


@pytest.fixture
def ears(stage, monkeypatch):
    made = Ears()
    monkeypatch.setattr("evennia_ai.npc.runtime.watchers_of", lambda *_, **__: [made])
    return made


def asks(stage, *script, is_protected: bool) -> list[object]:
    stage.talks_with(*script)
    live = runtime()
    request = ChatRequest(
        messages=(ChatMessage(role="user", content=CANARY),),
        model="m",
        max_tokens=9,
        timeout_seconds=9,
        question=CANARY,
    )
    key = CallKey(npc_ref=stage.npc.ai.ref, role="mediator", is_protected=is_protected)
    got: list[object] = []
    live.calls.asked(live.access, request, key).addBoth(got.append)
    stage.passes()
    return got


def test_watchers_get_the_words_of_an_unprotected_call(stage, ears):
    asks(stage, CANARY, is_protected=False)
    assert repr(ears.heard).count(CANARY) == 3


def test_watchers_get_only_the_lengths_of_a_protected_call(stage, ears):
    (reply,) = asks(stage, f"{CANARY}!", is_protected=True)
    assert reply.text == f"{CANARY}!"
    assert ears.heard
    assert CANARY not in repr(ears.heard)
    assert "[redacted] 11 characters" in repr(ears.heard)


def test_watchers_get_only_the_kind_of_error_of_a_protected_call(stage, ears):
    (failure,) = asks(stage, ModelRefused("m", 400, f"cannot read {CANARY}"), is_protected=True)
    assert CANARY in str(failure.value)
    assert CANARY not in repr(ears.heard)
    assert any(isinstance(one, ProtectedCallError) for one in ears.heard)
    assert "ModelRefused" in repr(ears.heard)
