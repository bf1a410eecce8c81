"""Runtime guidance: the client of the first speaker decides it for the whole conversation."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.meta_prompt import TOOL
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.blocks import GUIDANCE_END, GUIDANCE_MARK, guidance_for
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc.floor.ticks import tick_of
from evennia_ai.npc.senses.happenings import happened
from evennia_ai.npc.tools import registry
from evennia_ai.services.llm.clients.anthropic import ONE_SYSTEM
from evennia_ai.services.llm.roles import STRICT, adapt_messages, chat_messages
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history.conversations import conversations_of
from evennia_ai.store.knowledge import knowledge_bases
from tests.npc.screens import (
    AjaxWebClientSession,
    OwnProtocol,
    SshProtocol,
    SSLProtocol,
    TelnetProtocol,
    WebSocketClient,
    session_at,
)


def types_at(character, protocol, *, screenreader=False):
    """Let `character` be played from a client of this protocol, with the screen of the stage."""
    session = session_at(protocol, screenreader=screenreader)
    session.data_out = character.screen.data_out
    character.sessions.all = lambda: [session]


def heads(model):
    """Return the system messages of each prompt in order."""
    return [[m.content for m in r.messages if m.role == "system"] for r in model.requests]


def origins(stage):
    return [known.origin for known in conversations_of(stage.npc.ai.ref)]


@pytest.mark.req("S0-29", "S0-30", "S0-33")
@pytest.mark.parametrize(
    ("protocol", "origin"),
    [(WebSocketClient, "websocket"), (AjaxWebClientSession, "ajax/comet")],
)
@pytest.mark.parametrize("screenreader", [False, True])
def test_prompt_has_guidance_when_the_first_speaker_uses_the_web_client(
    stage, protocol, origin, screenreader
):
    types_at(stage.anna, protocol, screenreader=screenreader)
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    origin = f"{origin}+screenreader" if screenreader else origin
    assert heads(model)[0][-1] == guidance_for(origin)
    assert origins(stage) == [origin]


@pytest.mark.req("S0-33")
@pytest.mark.parametrize(
    ("protocol", "origin"),
    [
        (TelnetProtocol, "telnet"),
        (SSLProtocol, "telnet"),
        (SshProtocol, "ssh"),
        (OwnProtocol, "other"),
    ],
)
def test_prompt_has_no_guidance_when_the_first_speaker_uses_another_client(stage, protocol, origin):
    types_at(stage.anna, protocol)
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert not any(GUIDANCE_MARK in m.content for m in model.requests[0].messages)
    assert origins(stage) == [origin]


@pytest.mark.req("S0-29", "S0-33")
@pytest.mark.parametrize("first", [WebSocketClient, TelnetProtocol, OwnProtocol])
def test_second_speaker_with_another_client_does_not_change_system_messages(stage, first):
    types_at(stage.anna, first)
    types_at(stage.ben, TelnetProtocol if first is WebSocketClient else WebSocketClient)
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.ben, "Oren, and I?")
    before, after = heads(model)
    assert before == after
    assert any(GUIDANCE_MARK in text for text in after) == (first is WebSocketClient)


def let_ben_arrive(stage):
    """Let the NPC see Ben arrive with a telnet client. No NPC answers that."""
    types_at(stage.ben, TelnetProtocol)
    happened(stage.room, "arrive", "{actor} comes in.", actor=stage.ben)


def let_time_pass(stage):
    """Let the NPC hear a tick, on which it acts."""
    stage.npc.ai.hear(tick_of(stage.npc, "Time passes."))


def let_ben_poke(stage):
    """Let Ben poke the NPC from a telnet client. The NPC answers before anybody spoke."""
    types_at(stage.ben, TelnetProtocol)
    happened(stage.npc, "poke", "{actor} pokes you.", actor=stage.ben, wants_answer=True)


def let_ben_speak_to_anna(stage):
    """Let Ben say something to Anna, not to the NPC, from a telnet client."""
    types_at(stage.ben, TelnetProtocol)
    stage.says(stage.ben, "Fine weather, Anna.")


@pytest.mark.req("S0-29", "S0-33")
@pytest.mark.parametrize(
    "opening", [let_ben_arrive, let_time_pass, let_ben_poke, let_ben_speak_to_anna]
)
def test_events_before_the_first_words_to_the_npc_do_not_decide_guidance(stage, opening):
    model = stage.talks_with(lambda *_: "Aye.")
    opening(stage)
    stage.passes()
    assert origins(stage) == [""]
    types_at(stage.anna, WebSocketClient)
    stage.says(stage.anna, "Oren?")
    assert origins(stage) == ["websocket"]
    assert [GUIDANCE_MARK in "".join(head) for head in heads(model)][-1]


@pytest.mark.req("S0-33")
@pytest.mark.parametrize("opening", [let_time_pass, let_ben_poke])
def test_prompt_has_no_guidance_before_anybody_spoke_to_the_npc(stage, opening):
    model = stage.talks_with("Aye.")
    opening(stage)
    stage.passes()
    assert [GUIDANCE_MARK in "".join(head) for head in heads(model)] == [False]


@pytest.mark.req("S0-32", "S0-34", "S0-38")
def test_facts_follow_the_history_and_are_not_in_system_messages(stage):
    types_at(stage.anna, WebSocketClient)
    knowledge_bases.save_base(BaseInfo(key="port", name="Port ledger"), by=trusted("builder"))
    knowledge_bases.assign_base("port", GAME, by=trusted("builder"))
    registry.choose_tools(stage.npc, [TOOL], by=trusted("builder"))
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert heads(model)[0][-1] == guidance_for("websocket")
    facts = model.requests[0].messages[-2]
    assert facts.role == "user"
    for fact in ("Who speaks: Anna", "Port ledger", "Place: Ferry Landing"):
        assert fact in facts.content
        assert fact not in "".join(heads(model)[0])


def test_speaker_during_the_first_turn_does_not_decide_guidance(stage):
    types_at(stage.anna, WebSocketClient)
    types_at(stage.ben, TelnetProtocol)
    model = stage.talks_with("Aye.", "Aye.", delay_seconds=1.0)
    stage.says(stage.anna, "Oren?")
    stage.says(stage.ben, "Oren, and I?")
    stage.passes(5.0)
    stage.passes(5.0)
    assert len(model.requests) == 2
    assert [GUIDANCE_MARK in head[-1] for head in heads(model)] == [True, True]
    assert origins(stage) == ["websocket"]


def test_guidance_stays_after_a_restart(stage):
    types_at(stage.anna, WebSocketClient)
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    forget_everything()
    types_at(stage.anna, TelnetProtocol)
    stage.says(stage.anna, "Oren, still there?")
    assert GUIDANCE_MARK in heads(model)[1][-1]


def test_preview_has_the_guidance_of_the_turn(stage):
    types_at(stage.anna, WebSocketClient)
    stage.talks_with("Aye.")
    seen = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    stage.says(stage.anna, "Oren?")
    assert stage.npc.ai.last_report().sha256 == seen.sha256


def test_past_turn_is_composed_again_with_its_guidance(stage):
    from evennia_ai.npc.views.recomposing import PastReader
    from evennia_ai.store.history import turns

    types_at(stage.anna, WebSocketClient)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    past = PastReader().inputs(turns.last_turn(stage.npc.ai.ref))
    assert GUIDANCE_MARK in past.inputs.guidance


@pytest.mark.req("S0-29")
@pytest.mark.parametrize("profile", [STRICT, ONE_SYSTEM], ids=["strict", "one system"])
def test_guidance_ends_the_system_message_when_the_server_takes_only_one(stage, profile):
    types_at(stage.anna, WebSocketClient)
    prompt = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    first, *others = adapt_messages(chat_messages(prompt.messages), profile=profile)
    assert first.content.endswith(GUIDANCE_END)
    assert not any(GUIDANCE_MARK in message.content for message in others)
