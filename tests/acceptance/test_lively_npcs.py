"""What players type and see on a real server: quick lines, slow answers, `ask` and `tell`."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, copied_game, logged_in, shown, started
from tests.services.llm.clients.stub_server import StubServer, answers, answers_after

pytestmark = pytest.mark.server


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """A game with Anna and a builder beside Oren."""

    game: Evennia
    stub: StubServer
    anna: Connection
    builder: Connection

    def newest_prompt(self) -> str:
        return "\n".join(one["content"] for one in self.stub.requests[-1].body["messages"])


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landing]:
    stub = StubServer()
    profile = {"base_url": stub.base_url, "model": "tiny", "max_retries": 0}
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {profile!r}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_GATHER_SECONDS = 1.0
EVENNIA_AI_THINKING_SECONDS = 2.0
"""
    game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    try:
        with started(game), builder_beside_npc(game) as builder:
            demo = read_demo(game.root / "world" / "build_demo.py")
            with logged_in(game, *demo.player) as anna:
                anna.wait_for_quiet()
                yield Landing(game=game, stub=stub, anna=anna, builder=builder)
    finally:
        stub.close()


def test_three_quick_lines_get_one_answer(landing: Landing) -> None:
    before = len(landing.stub.requests)
    landing.stub.behaves(answers("Noon, and I row her."))
    for line in ("Oren, a question.", "When does the ferry leave?", "And who rows it?"):
        landing.anna.send(f"say {line}")
    landing.anna.wait_for("Oren says", seconds=60)
    landing.stub.wait_until_idle()
    assert len(landing.stub.requests) == before + 1
    assert "When does the ferry leave?" in landing.newest_prompt()


def test_everybody_sees_that_a_slow_npc_thinks_but_a_whisper_only_its_speaker(
    landing: Landing,
) -> None:
    landing.builder.forget()
    landing.stub.behaves(answers_after(6.0, "Aye."))
    read = shown(landing.anna, "say Oren, well?", until="Oren says")
    assert "Oren thinks it over." in landing.builder.wait_for_quiet()
    landing.stub.behaves(answers_after(6.0, "Aye."))
    landing.builder.forget()
    landing.anna.send("whisper oren = Well?")
    landing.anna.wait_for("Oren thinks it over.", seconds=60)
    landing.anna.wait_for("Oren whispers to you", seconds=60)
    assert "Oren" not in landing.builder.wait_for_quiet()
    assert "Oren says" in read


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("ask oren about the ferry", "Tell me about the ferry."),
        ("tell oren good evening", "Good evening"),
        ("tell oren = hello", "Hello"),
    ],
)
def test_ask_and_tell_speak_to_an_npc(landing: Landing, typed: str, words: str) -> None:
    landing.stub.behaves(answers("Aye."))
    told = shown(landing.anna, typed, until="Oren says")
    assert f'You say to Oren, "{words}"' in told
    assert words in landing.newest_prompt()


def test_tell_still_sends_private_messages_to_players(landing: Landing) -> None:
    before = len(landing.stub.requests)
    name = read_demo(landing.game.root / "world" / "build_demo.py").builder[0]
    landing.builder.forget()
    assert f"You paged {name}" in shown(landing.anna, f"tell {name} = The cave.", until="paged")
    assert "The cave." in landing.builder.wait_for("The cave", seconds=60)
    assert "The cave." in shown(landing.anna, "tell", until="cave")
    assert "The cave." in shown(landing.anna, "page/last", until="cave")
    assert len(landing.stub.requests) == before


def test_npc_knows_what_it_was_given(landing: Landing) -> None:
    landing.stub.behaves(answers("Thanks."))
    shown(landing.builder, "create/drop old lantern", until="lantern")
    shown(landing.builder, "get old lantern", until="pick up")
    shown(landing.builder, "give old lantern to oren", until="Oren says")
    landing.stub.behaves(answers("A lantern."))
    shown(landing.anna, "ask oren what he carries", until="Oren says")
    assert "You carry: old lantern" in landing.newest_prompt()
