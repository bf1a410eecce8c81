"""Fallback lines: they are heard and recorded, but no model reads them as the NPC's own words."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.clients.scripted import ScriptedModel
from evennia_ai.services.llm.offline.responder import OfflineResponder
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.authored.components import update
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.history.windows import windows

LOST = "lost in thought"
ENOUGH = "enough talk for now"


def _whose_model_is_away(stage: Any) -> str:
    stage.talks_with(ModelUnavailable("scripted", "no connection"))
    stage.says(stage.anna, "Oren?")
    return LOST


def _whose_prompt_does_not_fit(stage: Any) -> str:
    update("system_prompt", by=trusted("builder"), content="word " * 3000)
    stage.talks_with("Never said.", context_tokens=1000)
    stage.says(stage.anna, "Oren?")
    update("system_prompt", by=trusted("builder"), content="You are Oren.")
    return LOST


def _at_a_limit(stage: Any) -> str:
    limits = replace(Quotas(), player=Quota(calls_per_minute=1))
    stage.talks_with("Aye.", limits=limits)
    for _ in range(2):
        stage.says(stage.anna, "Oren?")
        stage.passes(5)
    return ENOUGH


def _without_a_model_or_anything_to_quote(stage: Any) -> str:
    stage.opens(Access(model=OfflineResponder("I am lost in thought just now.")))
    stage.says(stage.anna, "Oren?")
    stage.says(stage.anna, "Oren, wo ist der Leuchtturm?")
    return LOST


def _with_rubbish_for_a_reply(stage: Any) -> str:
    stage.talks_with("<think>hm</think>")
    stage.says(stage.anna, "Oren?")
    return LOST


Happens = Callable[[Any], str]


@pytest.fixture(
    params=[
        _whose_model_is_away,
        _whose_prompt_does_not_fit,
        _at_a_limit,
        _without_a_model_or_anything_to_quote,
        _with_rubbish_for_a_reply,
    ],
    ids=lambda one: one.__name__.strip("_"),
)
def said(request: pytest.FixtureRequest, stage: Any, logged: list[str]) -> str:
    """Return words of the line that the NPC said without a reply."""
    words: str = request.param(stage)
    return words


def test_fallback_line_is_heard(stage: Any, said: str) -> None:
    assert said in stage.screen_of(stage.ben)[-1]


def test_fallback_line_is_recorded_as_a_fallback(stage: Any, said: str) -> None:
    kinds = {kind for kind, _, body in stage.records() if said in body}
    assert kinds == {"fallback"}


@pytest.mark.parametrize("after_a_restart", [False, True])
def test_fallback_line_is_not_sent_to_models_as_words_of_the_npc(
    stage: Any, said: str, after_a_restart: bool
) -> None:
    if after_a_restart:
        forget_everything()
        stage.npc.__dict__.pop("ai")
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren, are you there?")
    sent = "\n".join(message.content for message in model.requests[-1].messages)
    assert "Anna: Oren?" in sent
    assert said not in sent


def test_fallback_line_is_in_no_summary_memory_or_lore_scan(stage: Any, said: str) -> None:
    """All of these are made from the messages that this test examines."""
    (where,) = conversations_of(stage.npc.ai.ref)
    history = windows(where.id).history
    shown = [history[index].content for index in range(history.earlier, history.stop)]
    assert shown
    assert not [text for text in shown if said in text]


def test_fallback_line_does_not_count_as_a_message(stage: Any, said: str) -> None:
    (where,) = conversations_of(stage.npc.ai.ref)
    at_once = windows(where.id).history.stop
    forget_everything()
    assert windows(where.id).history.stop == at_once


def test_offline_responder_quotes_only_the_npcs_own_answers(stage: Any) -> None:
    entry = {"keys": ["ferry"], "content": "The ferry crosses at slack water.", "enabled": True}
    book = {"name": "harbour", "extensions": {}, "entries": [{**entry, "insertion_order": 1}]}
    lorebooks.save_book("harbour", json.dumps(book), by=trusted("tests"))
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("tests"))
    stage.opens(Access(model=OfflineResponder("Hm.")))
    stage.says(stage.anna, "Oren, when does the ferry cross?")
    assert ("assistant", "", "The ferry crosses at slack water.") in stage.records()


def test_model_that_works_again_sees_only_its_own_earlier_words(
    stage: Any, logged: list[str]
) -> None:
    model = ScriptedModel(["Aye.", ModelUnavailable("scripted", "no connection"), "So?"])
    stage.install(model)
    for question in ("Oren, one?", "Oren, two?", "Oren, three?"):
        stage.says(stage.anna, question)
    said = [m.content for m in model.requests[-1].messages if m.role == "assistant"]
    assert said == ["Aye."]
