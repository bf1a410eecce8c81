"""Runtime guidance in the game: decided by the client of who first speaks to the NPC, for good."""

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
    """`character` is played from a client of this protocol; the screen is that of the stage."""
    session = session_at(protocol, screenreader=screenreader)
    session.data_out = character.screen.data_out
    character.sessions.all = lambda: [session]


def heads(model):
    """The system messages of each prompt, in their order."""
    return [[m.content for m in r.messages if m.role == "system"] for r in model.requests]


def origins(stage):
    return [known.origin for known in conversations_of(stage.npc.ai.ref)]


@pytest.mark.req("S0-29", "S0-30", "S0-33")
@pytest.mark.parametrize(
    ("protocol", "origin"),
    [(WebSocketClient, "websocket"), (AjaxWebClientSession, "ajax/comet")],
)
@pytest.mark.parametrize("screenreader", [False, True])
def test_who_speaks_from_the_web_client_first_makes_it_a_web_conversation(
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
def test_no_other_client_gets_the_block(stage, protocol, origin):
    types_at(stage.anna, protocol)
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert not any(GUIDANCE_MARK in m.content for m in model.requests[0].messages)
    assert origins(stage) == [origin]


@pytest.mark.req("S0-29", "S0-33")
@pytest.mark.parametrize("first", [WebSocketClient, TelnetProtocol, OwnProtocol])
def test_a_second_speaker_with_another_client_changes_nothing_of_the_head(stage, first):
    types_at(stage.anna, first)
    types_at(stage.ben, TelnetProtocol if first is WebSocketClient else WebSocketClient)
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.ben, "Oren, and I?")
    before, after = heads(model)
    assert before == after
    assert any(GUIDANCE_MARK in text for text in after) == (first is WebSocketClient)


def arrives(stage):
    """Ben, who is at a telnet client, is seen to come; nobody answers it."""
    types_at(stage.ben, TelnetProtocol)
    happened(stage.room, "arrive", "{actor} comes in.", actor=stage.ben)


def ticks(stage):
    """Time passes, and the NPC acts on it."""
    stage.npc.ai.hear(tick_of(stage.npc, "Time passes."))


def answers_a_happening(stage):
    """The NPC answers something that was done to it from a telnet client, before anybody spoke."""
    types_at(stage.ben, TelnetProtocol)
    happened(stage.npc, "poke", "{actor} pokes you.", actor=stage.ben, wants_answer=True)


def is_overheard(stage):
    """Ben, who is at a telnet client, says something that is not meant for the NPC."""
    types_at(stage.ben, TelnetProtocol)
    stage.says(stage.ben, "Fine weather, Anna.")


@pytest.mark.req("S0-29", "S0-33")
@pytest.mark.parametrize("opening", [arrives, ticks, answers_a_happening, is_overheard])
def test_what_opened_the_conversation_unasked_decides_nothing(stage, opening):
    model = stage.talks_with(lambda *_: "Aye.")
    opening(stage)
    stage.passes()
    assert origins(stage) == [""]
    types_at(stage.anna, WebSocketClient)
    stage.says(stage.anna, "Oren?")
    assert origins(stage) == ["websocket"]
    assert [GUIDANCE_MARK in "".join(head) for head in heads(model)][-1]


@pytest.mark.req("S0-33")
@pytest.mark.parametrize("opening", [ticks, answers_a_happening])
def test_a_turn_that_nobody_asked_for_has_no_block(stage, opening):
    model = stage.talks_with("Aye.")
    opening(stage)
    stage.passes()
    assert [GUIDANCE_MARK in "".join(head) for head in heads(model)] == [False]


@pytest.mark.req("S0-32", "S0-34", "S0-38")
def test_facts_of_the_request_are_behind_the_history_and_not_in_the_block(stage):
    types_at(stage.anna, WebSocketClient)
    knowledge_bases.save_base(BaseInfo(key="port", name="Port ledger"), by=trusted("builder"))
    knowledge_bases.bind_base("port", GAME, by=trusted("builder"))
    registry.choose_tools(stage.npc, [TOOL], by=trusted("builder"))
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert heads(model)[0][-1] == guidance_for("websocket")
    facts = model.requests[0].messages[-2]
    assert facts.role == "user"
    for fact in ("Who speaks: Anna", "Port ledger", "Place: Ferry Landing"):
        assert fact in facts.content
        assert fact not in "".join(heads(model)[0])


def test_who_speaks_while_the_first_turn_runs_decides_nothing(stage):
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


def test_it_stays_after_a_restart(stage):
    types_at(stage.anna, WebSocketClient)
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    forget_everything()
    types_at(stage.anna, TelnetProtocol)
    stage.says(stage.anna, "Oren, still there?")
    assert GUIDANCE_MARK in heads(model)[1][-1]


def test_a_preview_shows_what_the_turn_will_have(stage):
    types_at(stage.anna, WebSocketClient)
    stage.talks_with("Aye.")
    seen = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    stage.says(stage.anna, "Oren?")
    assert stage.npc.ai.last_report().sha256 == seen.sha256


def test_a_past_turn_is_composed_again_with_it(stage):
    from evennia_ai.npc.views.recomposing import PastReader
    from evennia_ai.store.history import turns

    types_at(stage.anna, WebSocketClient)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    past = PastReader().inputs(turns.last_turn(stage.npc.ai.ref))
    assert GUIDANCE_MARK in past.inputs.guidance


@pytest.mark.req("S0-29")
@pytest.mark.parametrize("profile", [STRICT, ONE_SYSTEM], ids=["strict", "one system"])
def test_a_server_with_one_system_message_has_the_block_as_its_last_text(stage, profile):
    types_at(stage.anna, WebSocketClient)
    prompt = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    first, *others = adapt_messages(chat_messages(prompt.messages), profile=profile)
    assert first.content.endswith(GUIDANCE_END)
    assert not any(GUIDANCE_MARK in message.content for message in others)
