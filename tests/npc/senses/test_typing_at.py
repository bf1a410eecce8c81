"""The client somebody types at, asked of sessions that Evennia's own protocols opened."""

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
    """`character` is played from these sessions."""
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
def test_each_protocol_of_evennia_has_its_word(stage, protocol, client):
    types_at(stage.anna, session_at(protocol))
    assert client_of(stage.anna) == client


@pytest.mark.req("S0-30")
@pytest.mark.parametrize(
    ("protocol", "client"),
    [(WebSocketClient, "websocket+screenreader"), (TelnetProtocol, "telnet+screenreader")],
)
def test_who_has_it_read_out_is_told_apart(stage, protocol, client):
    types_at(stage.anna, session_at(protocol, screenreader=True))
    assert client_of(stage.anna) == client


@pytest.mark.parametrize(
    ("telnet_at", "web_at", "client"), [(5.0, 9.0, "websocket"), (9.0, 5.0, "telnet")]
)
def test_the_client_is_the_one_that_was_typed_at_last(stage, telnet_at, web_at, client):
    telnet = session_at(TelnetProtocol, typed_at=telnet_at)
    types_at(stage.anna, telnet, session_at(WebSocketClient, typed_at=web_at))
    assert client_of(stage.anna) == client


def test_what_a_client_says_of_itself_is_no_word(stage):
    session = session_at(WebSocketClient)
    session.protocol_flags["CLIENTNAME"] = "<b>Mudlet</b>"
    types_at(stage.anna, session)
    assert client_of(stage.anna) == "websocket"


def test_who_is_played_from_nowhere_types_at_no_client(stage):
    types_at(stage.anna)
    assert client_of(stage.anna) == ""


def test_an_npc_and_nobody_type_at_no_client(stage):
    assert (client_of(stage.npc), client_of(None)) == ("", "")
