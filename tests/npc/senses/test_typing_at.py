"""The client of a player, read from sessions of Evennia's own protocols."""

import pytest

from evennia_ai.npc.senses.perception import client_of
from tests.npc.screens import (
    AjaxWebClientSession,
    OwnProtocol,
    SshProtocol,
    SSLProtocol,
    TelnetProtocol,
    WebSocketClient,
    session_at,
)


def types_at(character, *sessions):
    """Let `character` be played from these sessions."""
    character.sessions.all = lambda: list(sessions)


@pytest.mark.req("S0-30")
@pytest.mark.parametrize(
    ("protocol", "client"),
    [
        (TelnetProtocol, "telnet"),
        (SSLProtocol, "telnet"),
        (SshProtocol, "ssh"),
        (WebSocketClient, "websocket"),
        (AjaxWebClientSession, "ajax/comet"),
        (OwnProtocol, "other"),
    ],
)
def test_client_is_a_fixed_word_for_each_protocol(stage, protocol, client):
    types_at(stage.anna, session_at(protocol))
    assert client_of(stage.anna) == client


@pytest.mark.req("S0-30")
@pytest.mark.parametrize(
    ("protocol", "client"),
    [(WebSocketClient, "websocket+screenreader"), (TelnetProtocol, "telnet+screenreader")],
)
def test_client_is_marked_for_a_screen_reader(stage, protocol, client):
    types_at(stage.anna, session_at(protocol, screenreader=True))
    assert client_of(stage.anna) == client


@pytest.mark.parametrize(
    ("telnet_at", "web_at", "client"), [(5.0, 9.0, "websocket"), (9.0, 5.0, "telnet")]
)
def test_client_is_the_one_of_the_session_with_the_last_command(stage, telnet_at, web_at, client):
    telnet = session_at(TelnetProtocol, typed_at=telnet_at)
    types_at(stage.anna, telnet, session_at(WebSocketClient, typed_at=web_at))
    assert client_of(stage.anna) == client


def test_client_name_in_protocol_flags_is_ignored(stage):
    session = session_at(WebSocketClient)
    session.protocol_flags["CLIENTNAME"] = "<b>Mudlet</b>"
    types_at(stage.anna, session)
    assert client_of(stage.anna) == "websocket"


def test_client_is_empty_without_sessions(stage):
    types_at(stage.anna)
    assert client_of(stage.anna) == ""


def test_client_name_is_empty_for_an_npc_and_without_a_character(stage):
    assert (client_of(stage.npc), client_of(None)) == ("", "")
