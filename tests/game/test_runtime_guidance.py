"""Runtime guidance in the game: decided by the client a conversation was opened from, for good."""

import pytest

from evennia_ai.game.typing_at import client_of
from evennia_ai.llm.anthropic_wire import ONE_SYSTEM
from evennia_ai.llm.chat import chat_messages
from evennia_ai.llm.roles import STRICT, adapt
from evennia_ai.prompt.guidance import END, MARK
from evennia_ai.store.conversations import conversations_of
from evennia_ai.store.snapshots import forget_everything


def types_at(character, *protocols, typed_at=()):
    """`character` is played from these clients, the screen being that of the stage."""
    screens = []
    for index, protocol in enumerate(protocols):
        screen = type(character.screen)()
        screen.sent = character.screen.sent
        screen.protocol_key = protocol
        screen.cmd_last = typed_at[index] if typed_at else 0.0
        screens.append(screen)
    character.sessions.all = lambda: screens


def heads(model):
    """The system messages of each prompt, in their order."""
    return [[m.content for m in r.messages if m.role == "system"] for r in model.requests]


def origins(stage):
    return [known.origin for known in conversations_of(stage.npc.ai.ref)]


@pytest.mark.req("S0-29", "S0-33")
@pytest.mark.parametrize("protocol", ["webclient/websocket", "webclient/ajax"])
def test_who_speaks_from_the_web_client_first_makes_it_a_web_conversation(stage, protocol):
    types_at(stage.anna, protocol)
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert MARK in heads(model)[0][-1]
    assert origins(stage) == ["webclient"]


@pytest.mark.req("S0-33")
@pytest.mark.parametrize(
    ("protocol", "origin"), [("telnet/ssl", "telnet"), ("ssh", "ssh"), ("game/api", "")]
)
def test_no_other_client_gets_the_block(stage, protocol, origin):
    types_at(stage.anna, protocol)
    model = stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    assert not any(MARK in m.content for m in model.requests[0].messages)
    assert origins(stage) == [origin]


@pytest.mark.parametrize("first", ["webclient/websocket", "telnet"])
def test_a_second_speaker_with_another_client_changes_nothing_of_the_head(stage, first):
    types_at(stage.anna, first)
    types_at(stage.ben, "telnet" if first != "telnet" else "webclient/websocket")
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    stage.says(stage.ben, "Oren, and I?")
    before, after = heads(model)
    assert before == after
    assert any(MARK in text for text in after) == (first != "telnet")


def test_it_stays_after_a_restart(stage):
    types_at(stage.anna, "webclient/websocket")
    model = stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren?")
    forget_everything()
    types_at(stage.anna, "telnet")
    stage.says(stage.anna, "Oren, still there?")
    assert MARK in heads(model)[1][-1]


def test_a_preview_shows_what_the_turn_will_have(stage):
    types_at(stage.anna, "webclient/websocket")
    stage.talks_with("Aye.")
    seen = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    stage.says(stage.anna, "Oren?")
    assert stage.npc.ai.last_report().sha256 == seen.sha256


def test_a_past_turn_is_composed_again_with_it(stage):
    from evennia_ai.game.past_inputs import PastReader
    from evennia_ai.store import turns

    types_at(stage.anna, "webclient/websocket")
    stage.talks_with("Aye.")
    stage.says(stage.anna, "Oren?")
    past = PastReader().inputs(turns.last_turn(stage.npc.ai.ref))
    assert MARK in past.inputs.guidance


@pytest.mark.parametrize(
    ("protocols", "typed_at", "client"),
    [
        ((), (), ""),
        (("telnet", "webclient/websocket"), (5.0, 9.0), "webclient"),
        (("telnet", "webclient/websocket"), (9.0, 5.0), "telnet"),
        (("<b>webclient</b>",), (), ""),
    ],
)
def test_the_client_is_the_one_that_was_typed_at_last(stage, protocols, typed_at, client):
    types_at(stage.anna, *protocols, typed_at=typed_at)
    assert client_of(stage.anna) == client


def test_an_npc_and_nobody_type_at_no_client(stage):
    assert (client_of(stage.npc), client_of(None)) == ("", "")


@pytest.mark.req("S0-29")
@pytest.mark.parametrize("profile", [STRICT, ONE_SYSTEM], ids=["strict", "one system"])
def test_a_server_with_one_system_message_has_the_block_as_its_last_text(stage, profile):
    types_at(stage.anna, "webclient/websocket")
    prompt = stage.npc.ai.preview("Oren?", speaker=stage.anna)
    first, *others = adapt(chat_messages(prompt.messages), profile=profile)
    assert first.content.endswith(END)
    assert not any(MARK in message.content for message in others)
