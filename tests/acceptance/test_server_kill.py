"""Test `kill -9` of a real server in the middle of a turn, as players and the log show it."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server.evennia_process import Evennia
from tests.acceptance import dying_server
from tests.acceptance.games import builder_beside_npc, copied_game, rows_of, shown, started
from tests.acceptance.launching import Prepared
from tests.services.llm.clients.stub_server import StubServer, answers, calls, stalls

pytestmark = [pytest.mark.server, pytest.mark.minutes(1)]

STARTED = "NPCs speak through"
TAKEN_UP = "lines to NPCs from before the server stopped: 1 answered now"
QUESTION = "say Oren, what of the tide?"
AGAIN = "Oren, are you there?"
NEWEST_AGAIN = f"""
SELECT (SELECT state FROM evennia_ai_turn WHERE event_record_id = heard.id ORDER BY id DESC LIMIT 1)
FROM evennia_ai_record AS heard WHERE heard.body = '{AGAIN}' ORDER BY heard.id DESC LIMIT 1
"""
"""Selects the state of the last turn that answers the newest question after the restart."""
SLOW_TOOLS = Path(__file__).with_name("slow_tools.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Counts of stored rows before and after a restart, with the log and the next answer."""

    dead: dict[str, int]
    log: str
    alive: dict[str, int]
    answer: str


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """The demo game with the stub as its model, and a startup module that can kill the server."""
    settings = f"""
EVENNIA_AI_BASE_URL = {stub.base_url!r}
EVENNIA_AI_MODEL = "tiny"
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_TOOLS = ["world.slow_tools.RingTooHard"]
AT_SERVER_STARTSTOP_MODULE = ["server.conf.at_server_startstop", "server.conf.dying_server"]
"""
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    shutil.copy(dying_server.__file__, evennia.root / "server" / "conf")
    shutil.copy(SLOW_TOOLS, evennia.root / "world")
    with started(evennia):
        yield evennia


def dies_at(game: Evennia, step: str) -> None:
    """Ask a question, and let the server kill itself at a step of the turn."""
    with builder_beside_npc(game) as connection:
        (game.root / dying_server.FILE).write_text(step, encoding="utf-8")
        connection.send(QUESTION)
        wait_until(lambda: not server_runs(game))


def dies_in_the_call(game: Evennia, stub: StubServer) -> None:
    """Ask a question, and kill the server while the model works."""
    stub.behaves(stalls)
    before = len(stub.requests)
    with builder_beside_npc(game) as connection:
        connection.send(QUESTION)
        wait_until(lambda: len(stub.requests) > before)
        os.kill(server_pid(game), signal.SIGKILL)
        wait_until(lambda: not server_runs(game))


def dies_in_a_tool(game: Evennia, stub: StubServer) -> None:
    """Ask a question whose turn calls a tool that kills the server."""
    stub.behaves(calls("ring_too_hard", "{}"))
    with builder_beside_npc(game) as connection:
        shown(connection, "ai/tools oren = ring_too_hard")
        connection.send(QUESTION)
        wait_until(lambda: not server_runs(game))


def restarted(game: Prepared, stub: StubServer, *, waits: bool = True) -> Restart:
    """Start the server again, and ask another question.

    If the old question still `waits` for an answer, this waits until the game has taken it up,
    a few seconds after the start. At the end no turn is running, so the next test can begin.
    """
    dead = stored(game)
    stub.behaves(answers("I am here."))
    log = game.root / "server" / "logs" / "server.log"
    start = log.stat().st_size
    game.start_server()
    wait_until(lambda: STARTED in log.read_text(encoding="utf-8", errors="replace")[start:])
    with builder_beside_npc(game) as connection:
        alive = stored(game)
        if waits:
            wait_until(lambda: TAKEN_UP in log.read_text(encoding="utf-8")[start:])
        connection.send(f"say {AGAIN}")
        answer = connection.wait_for(r'^Oren says, ".*$', seconds=60)
        wait_until(lambda: rows_of(game, NEWEST_AGAIN) == [("done",)])
        wait_until(lambda: "idle, 0 waiting" in shown(connection, "ai oren"))
    told = log.read_bytes()[start:].decode(errors="replace")
    return Restart(dead=dead, log=told, alive=alive, answer=answer)


def stored(game: Evennia) -> dict[str, int]:
    """Return the number of turns in each state, and the number of records.

    Arrivals and departures are not counted, because each login of a test adds some.
    """
    counts = dict(rows_of(game, "SELECT state, count(*) FROM evennia_ai_turn GROUP BY state"))
    spoken = "SELECT count(*) FROM evennia_ai_record WHERE kind <> 'event'"
    ((counts["records"],),) = rows_of(game, spoken)
    return counts


def server_pid(game: Evennia) -> int:
    return int((game.root / "server" / "server.pid").read_text(encoding="utf-8"))


def server_runs(game: Evennia) -> bool:
    """True if the process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{server_pid(game)}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until(reached: Callable[[], bool], *, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
class TestKilled:
    def test_event_is_kept_when_the_server_dies_before_the_prompt_commit(self, game, stub):
        dies_at(game, "before INSERT evennia_ai_turn")
        again = restarted(game, stub)
        assert again.dead == {"records": 1}
        assert "interrupted" not in again.log
        assert 'Oren says, "I am here."' in again.answer

    @pytest.mark.req("S2-29")
    def test_turn_is_closed_and_logged_when_the_server_dies_in_the_model_call(self, game, stub):
        dies_in_the_call(game, stub)
        again = restarted(game, stub)
        assert again.dead["open"] == 1
        assert "1 interrupted turn was closed" in again.log
        assert again.alive["interrupted"] == 1
        assert TAKEN_UP in again.log
        assert 'Oren says, "I am here."' in again.answer

    def test_committed_reply_is_kept_when_the_server_dies_before_saying(self, game, stub):
        stub.behaves(answers("Nobody hears this."))
        before = stored(game)
        dies_at(game, "after UPDATE evennia_ai_turn")
        again = restarted(game, stub, waits=False)
        assert again.dead["done"] == before["done"] + 1
        assert "interrupted" not in again.log
        assert again.alive == again.dead
        assert 'Oren says, "I am here."' in again.answer
        sent = [message["content"] for message in stub.requests[-1].body["messages"]]
        assert "Nobody hears this." in sent

    def test_tool_call_is_closed_and_not_repeated_when_the_server_dies_in_a_tool(self, game, stub):
        dies_in_a_tool(game, stub)
        again = restarted(game, stub, waits=False)  # a turn that has called a tool is not repeated
        assert again.dead["open"] == 1
        assert "1 interrupted turn was closed" in again.log
        assert (game.root / "tools_used").read_text(encoding="utf-8") == "ring_too_hard\n"
        call, result = [m for m in stub.requests[-1].body["messages"] if is_of_a_tool(m)]
        assert call["tool_calls"][0]["id"] == result["tool_call_id"]
        assert "It is not known whether this was done" in result["content"]
        assert 'Oren says, "I am here."' in again.answer


def is_of_a_tool(message: dict[str, Any]) -> bool:
    return message["role"] == "tool" or "tool_calls" in message
