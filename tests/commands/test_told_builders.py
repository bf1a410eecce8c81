"""Builders get messages about NPCs without an answer and about cut prompts, without asking."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import override_settings

from evennia_ai.engine.errors import ModelRefused
from evennia_ai.npc.mind import news
from evennia_ai.npc.mind.news import News
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.llm.chat import ChatReply, Usage
from evennia_ai.store.model_calls import newest_calls
from tests.commands.stage import Stage

LONG = "The night ferry stopped running because nobody would steer her. " * 300


@pytest.fixture
def listen(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], dict[str, list[str]]]]:
    """Start to record, by name, the messages that builder and player get."""
    people = (stage.builder, stage.player)
    sessions = [SimpleNamespace(get_puppet=lambda who=who: who) for who in people]
    monkeypatch.setattr(news.SESSION_HANDLER, "get_sessions", lambda: sessions)

    def begin() -> dict[str, list[str]]:
        return {who.key: _read_by(who) for who in people}

    yield begin
    for who in people:
        who.__dict__.pop("msg", None)


def _read_by(who: Any) -> list[str]:
    read: list[str] = []

    def msg(text: Any = None, **_: Any) -> None:
        line = text[0] if isinstance(text, tuple) else text
        if isinstance(line, str) and line.startswith("[ai]"):
            read.append(line)

    who.__dict__["msg"] = msg
    return read


@pytest.fixture
def heard(listen: Any) -> dict[str, list[str]]:
    return listen()


@contextmanager
def playing(stage: Stage, *script: Any) -> Iterator[None]:
    with stage.model(*script):
        live = runtime()
        live.watch.add(News(now=live.clock.seconds))
        yield


def says(stage: Stage, who: Any) -> None:
    who.at_say("Oren, when does she leave?", msg_self=True)
    runtime().recorder.flush()
    stage.waited()


REFUSED = ModelRefused("small", 401, "no such key")


def test_builder_who_spoke_gets_the_reason_even_with_tell_off(stage, heard):
    with playing(stage, REFUSED):
        says(stage, stage.builder)
    assert len(heard["Mara"]) == 1
    assert heard["Mara"][0].startswith("[ai] Oren has no answer: model 'small' refused the request")
    assert "no such key" in heard["Mara"][0]
    assert "ai/log Oren" in heard["Mara"][0]
    assert heard["Pim"] == []


def test_builder_who_switched_reports_on_gets_the_reason_of_a_failure_once(stage, heard):
    news.switch_news(stage.builder, True)
    with playing(stage, REFUSED):
        says(stage, stage.builder)
    assert len(heard["Mara"]) == 1


def test_players_get_no_reason_and_builders_nearby_at_the_third_time(stage, heard):
    with playing(stage, REFUSED, REFUSED, REFUSED, REFUSED):
        for times in range(1, 5):
            says(stage, stage.player)
            assert len(heard["Mara"]) == (times >= 3)
    assert "(3 in a row)" in heard["Mara"][0]
    assert heard["Pim"] == []


def a_cut_reply(read: int = 256) -> ChatReply:
    return ChatReply(text="Aye.", model="m", usage=Usage(input_tokens=read, output_tokens=2))


def test_prompt_shortened_by_the_server_is_reported_to_builders_and_shown_with_its_turn(
    stage, listen
):
    stage.builds(f"note oren = {LONG}")
    heard = listen()
    with playing(stage, a_cut_reply(), a_cut_reply(), a_cut_reply(9000)):
        says(stage, stage.player)
        says(stage, stage.player)
        assert len(heard["Mara"]) == 1
        assert "Oren (speaker): the server read 256 of about" in heard["Mara"][0]
        assert "OLLAMA_CONTEXT_LENGTH" in heard["Mara"][0]
        assert heard["Pim"] == []
        shown = f"256 of about {newest_calls(1)[0].whole_tokens}"
        for command in ("ai/context oren", "ai oren", "ai/log oren"):
            assert shown in " ".join(stage.builds(command).split()), command
        told = stage.builds("ai")
        assert "CUT" in told
        assert "see ai/context Oren" in told
        says(stage, stage.player)
        assert newest_calls(1)[0].whole_tokens is None
        assert "CUT" not in stage.builds("ai")
        assert "the server read" not in stage.builds("ai/context oren")


def test_builders_everywhere_read_once_that_the_money_of_the_game_is_spent(
    stage: Stage, heard: dict[str, list[str]]
) -> None:
    stage.builder.location = None
    limits = {"game": {"dollars_per_day": 0.01}}
    priced = {"default": {"price": {"input": 1000, "output": 1000}}}
    with (
        override_settings(EVENNIA_AI_LIMITS=limits, EVENNIA_AI_PROFILES=priced),
        playing(stage, "Aye.", "Aye.", "Aye."),
    ):
        for _ in range(3):
            stage.player.at_say("Oren, are you there?")
            stage.waited()
    (line,) = heard[stage.builder.key]
    assert line.startswith("[ai] no NPC asks a model: the game has used its $0.010 per day; again")
    assert heard[stage.player.key] == []
