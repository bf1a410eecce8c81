"""Test which guidance about clients the NPC's model gets, for web clients and for telnet."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from evennia_ai.engine.prompt.blocks import GUIDANCE_MARK, guidance_for
from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import builder_beside_npc, copied_game, reload, rows_of, started
from tests.acceptance.web_client import at_the_web_client
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = pytest.mark.server


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The prompt heads after each line, and the origins of the conversations."""

    heads: dict[str, tuple[str, ...]]
    newest: str
    """The last message of the first request."""
    origins: list[tuple[Any, ...]]
    origins_before: list[tuple[Any, ...]]
    screen: str


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    server.behaves(answers("Aye."))
    yield server
    server.close()


@pytest.fixture(scope="module")
def played(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Anna speaks from the web client, then the builder from telnet, then Anna again."""
    settings = f"""
EVENNIA_AI_PROFILES = {{
    "default": {{"base_url": {stub.base_url!r}, "model": "tiny", "stream": False}}
}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    with ExitStack() as stack:
        game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
        stack.enter_context(started(game))
        demo = read_demo(game.root / "world" / "build_demo.py")
        builder = stack.enter_context(builder_beside_npc(game))
        anna = stack.enter_context(at_the_web_client(game, *demo.player))
        builder.send(f"@teleport {demo.player[0]} = here")
        builder.wait_for_quiet()
        before, heads = origins(game), {}
        screen = asks(anna, demo.npc, "is the ferry late?")
        heads["web"] = head(stub)
        newest = stub.requests[-1].body["messages"][-1]["content"]
        asks(builder, demo.npc, "and for me?")
        heads["telnet after web"] = head(stub)
        builder.send(f"whisper {demo.npc} = is the ferry late?")
        builder.wait_for("whispers", seconds=60)
        builder.wait_for_quiet()
        heads["telnet whisper"] = head(stub)
        anna.tell("client_options", screenreader=True)
        anna.send(f"whisper {demo.npc} = is the ferry late?")
        anna.wait_for("whispers", seconds=60)
        anna.wait_for_quiet()
        heads["screen reader"] = head(stub)
        reload(game)
        asks(builder, demo.npc, "still there?")
        heads["after a reload"] = head(stub)
        yield Played(
            heads=heads,
            newest=newest,
            origins=origins(game),
            origins_before=before,
            screen=screen,
        )


def asks(client: Any, npc: str, question: str) -> str:
    """Ask a question, and return what the client shows up to the answer."""
    client.send(f"say {npc}, {question}")
    client.wait_for(r'^\S+ says, "Aye', seconds=60)
    shown: str = client.wait_for_quiet()
    return shown


def head(stub: StubServer) -> tuple[str, ...]:
    """Return the messages of the newest request up to the guidance, or () without guidance."""
    texts = tuple(one["content"] for one in stub.requests[-1].body["messages"])
    ends = [at for at, text in enumerate(texts) if GUIDANCE_MARK in text]
    return texts[: ends[-1] + 1] if ends else ()


def origins(game: Evennia) -> list[tuple[Any, ...]]:
    """Return kind and origin of the conversations, in the order of their opening."""
    return rows_of(game, "SELECT kind, origin FROM evennia_ai_conversation ORDER BY id")


def test_web_client_shows_the_reply_of_the_npc(played: Played) -> None:
    assert 'says, "Aye."' in played.screen


@pytest.mark.req("S0-12")
def test_current_message_is_last_and_ends_with_date_and_minute_in_the_demo(played: Played) -> None:
    assert re.search(r"is the ferry late\?\n\s*\[Now: \d{4}-\d\d-\d\d \d\d:\d\d\]$", played.newest)


@pytest.mark.req("S0-29")
def test_arrival_by_telnet_sets_no_origin(played: Played) -> None:
    assert ("room", "") in played.origins_before


@pytest.mark.req("S0-29", "S0-30")
def test_guidance_for_the_web_client_ends_the_prompt_head(played: Played) -> None:
    assert played.heads["web"][-1] == guidance_for("websocket")


@pytest.mark.req("S0-29")
def test_prompt_head_is_unchanged_by_a_second_speaker_at_telnet(played: Played) -> None:
    assert played.heads["telnet after web"] == played.heads["web"]


@pytest.mark.req("S0-33")
def test_conversation_from_telnet_has_no_client_guidance(played: Played) -> None:
    assert played.heads["telnet whisper"] == ()


@pytest.mark.req("S0-30")
def test_screen_reader_user_gets_screen_reader_guidance(played: Played) -> None:
    assert played.heads["screen reader"][-1] == guidance_for("websocket+screenreader")


@pytest.mark.req("S0-29")
def test_client_guidance_is_unchanged_after_a_reload(played: Played) -> None:
    assert played.heads["after a reload"] == played.heads["web"]


@pytest.mark.req("S0-30")
def test_conversation_origin_is_the_protocol_name_of_evennia(played: Played) -> None:
    assert {
        ("room", "websocket"),
        ("private", "telnet"),
        ("private", "websocket+screenreader"),
    } <= {*played.origins}
