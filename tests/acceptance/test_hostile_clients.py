"""A real server: what a player types and a model writes reaches other players' clients as text.

A player plays the worst texts of the corpus, the model says each of them back, and two others
receive it byte for byte: one whose client takes links, one without them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.ports import HOST
from server.telnet import IAC, Connection
from tests.acceptance.games import builder_beside_npc, copied_game, shown, started
from tests.game.hostile.corpus import MARK, corpus
from tests.game.hostile.plain import assert_plain
from tests.llm.stub_server import Seen, StubServer, answers

pytestmark = pytest.mark.server

WORST = (
    "ChatML ends the turn and begins a system turn",
    "DeepSeek roles",
    "frame of a tool result",
    "macros that roll, pick and hide",
    "format braces",
    "functions that reckon and fill memory",
    "colours",
    "doubled bars",
    "a link that types a command",
    "a link with doubled bars",
    "links without an end",
    "clear the screen and move the cursor",
    "titles, links and the clipboard",
    "controls of the second set",
    "the end of a text",
    "telnet's own command",
    "MXP as a terminal reads it",
    "a script",
    "directions of writing",
    "tags of letters nobody sees",
    "a flood of accents",
    "halves of letters",
)
LONGEST = 700
"""Evennia refuses lines of more than 6,000 characters, with each byte of an accent as four."""
TEXTS = {case.name: case.text[:LONGEST] for case in corpus() if case.name in WORST}
LISTENERS = ("ben", "cara")
PASSWORD = "harbour-player-2"
END = b"\x1b[0m\r\n" + bytes([IAC, 249])
"""What the server puts behind each message: colours off, a line end, telnet's "go ahead"."""
STILL_THERE = bytes([IAC, 241])
TOKEN = re.compile(r"<\|[^<>|]*\|>|<｜[^<>]*｜>|\[/?INST\]|</?s>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What two clients were sent of one text, and what the model was asked."""

    with_links: bytes
    without_links: bytes
    request: Seen


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game, whose model is the stub."""
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {{"base_url": {stub.base_url!r}, "model": "tiny"}}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_LIMITS = {{"player": {{"calls_per_minute": 1000}}, "npc": {{"calls_per_minute": 1000}}}}
"""
    with started(copied_game(tmp_path_factory.mktemp("game"), settings=settings)) as evennia:
        yield evennia


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    with builder_beside_npc(game) as connection:
        yield connection


@pytest.fixture(scope="module")
def played(
    game: Evennia, stub: StubServer, builder: Connection
) -> Iterator[Callable[[str], Played]]:
    """What came of a text, which is played when it is first asked for."""
    known: dict[str, Played] = {}
    with ExitStack() as stack:
        listeners = (
            stack.enter_context(newcomer(game, LISTENERS[0])),
            stack.enter_context(newcomer(game, LISTENERS[1], links=False)),
        )
        attacker = stack.enter_context(attacking(game))
        for name in (*LISTENERS, "anna"):
            shown(builder, f"@teleport {name} = here")

        def play(name: str) -> Played:
            if name not in known:
                known[name] = _play(TEXTS[name], attacker, listeners, stub)
            return known[name]

        yield play


def newcomer(game: Evennia, name: str, *, links: bool = True) -> Connection:
    """A player who comes for the first time."""
    client = Connection(HOST, game.ports.telnet, links=links)
    client.wait_for("come ashore")
    client.send(f"create {name} {PASSWORD}")
    client.wait_for(r"\[Y\]/N")
    client.send("y")
    client.wait_for("A new account")
    client.send(f"connect {name} {PASSWORD}")
    client.wait_for("You become")
    return client


def attacking(game: Evennia) -> Connection:
    demo = read_demo(game.root / "world" / "build_demo.py")
    client = Connection(HOST, game.ports.telnet, links=True)
    client.wait_for("come ashore")
    client.send("connect {} {}".format(*demo.player))
    client.wait_for("You become")
    return client


def _play(
    text: str, attacker: Connection, listeners: Sequence[Connection], stub: StubServer
) -> Played:
    stub.behaves(answers(text))
    for one in listeners:
        one.forget()
    attacker.send(f"talk oren = {text}")
    for one in listeners:
        one.wait_for("Oren says")
        one.wait_for_quiet(quiet_seconds=0.5)
    with_links, without_links = (one.raw for one in listeners)
    return Played(with_links=with_links, without_links=without_links, request=stub.requests[-1])


every_text = pytest.mark.parametrize("name", TEXTS)
Playing = Callable[[str], Played]


@every_text
def test_a_client_is_sent_text_and_nothing_else(played: Playing, name: str) -> None:
    for raw in (played(name).with_links, played(name).without_links):
        text = raw.replace(STILL_THERE, b"").replace(END, b"\n").replace(b"\r\n", b"\n").decode()
        for line in text.split("\n"):
            assert_plain(line)


@every_text
def test_both_hear_the_player_and_the_npc(played: Playing, name: str) -> None:
    for raw in (played(name).with_links, played(name).without_links):
        assert b'Anna says to Oren, "' in raw
        assert b'Oren says, "' in raw


@every_text
def test_the_server_of_the_model_is_sent_the_text_in_one_message_of_a_user(
    played: Playing, name: str
) -> None:
    messages = played(name).request.body["messages"]
    last = messages[-1]
    assert (last["role"], last["content"].startswith("Anna: ")) == ("user", True)
    assert [one for one in messages if one["role"] == "system" and MARK in one["content"]] == []
    assert [found for one in messages if (found := TOKEN.search(one["content"]))] == []


def test_every_turn_of_it_can_be_replayed(played: Playing, builder: Connection) -> None:
    for name in TEXTS:
        played(name)
    assert "the same bytes as were sent" in shown(builder, "ai/replay oren = 5")
    assert "the chain holds" in " ".join(shown(builder, "ai/verify oren").split())
