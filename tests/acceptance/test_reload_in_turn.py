"""Test a reload of a real server in the middle of a turn: nothing is said or done twice.

In each scene the model or a tool is slow, and the superuser reloads the server meanwhile. Each
scene is played once. The tests read what players saw, the requests and the database.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import (
    builder_beside_npc,
    copied_game,
    logs_of,
    reload,
    rows_of,
    shown,
    started,
)
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    answers,
    calls,
    delta,
    event,
    stalls_until_left,
    streams_and_stalls,
)

pytestmark = pytest.mark.server

LONG_SECONDS = 60.0
FIRST = "Oren, what of the tide?"
SECOND = "Oren, and what of the ferry?"
THIRD = "Oren, are you there?"
TIDE = "It turns at six."
HERE = "I am here."
STOPPED = "the server stopped before the reply"
TOOLS = ("ring", "send_the_boy")
SLOW_TOOLS = Path(__file__).with_name("slow_tools.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a scene left after the reload and one more question.

    `questions` are the questions in the requests to the model. `turns` are pairs of state and
    outcome, `records` pairs of kind and body.
    """

    read_after: str
    questions: list[str]
    turns: list[tuple[str, str]]
    records: list[tuple[str, str]]
    last_request: list[dict[str, Any]]

    @property
    def said(self) -> list[str]:
        """What Oren said, from the records."""
        return [body for kind, body in self.records if kind == "assistant"]


@pytest.fixture(scope="module")
def stub() -> Iterator[StubServer]:
    server = StubServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def game(stub: StubServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    """The demo game with a slow model, and tools that log each use in a file."""
    profile = {
        "base_url": stub.base_url,
        "model": "tiny",
        "timeout_seconds": LONG_SECONDS,
        "idle_seconds": LONG_SECONDS,
        "speaks_early": True,
    }
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {profile!r}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
EVENNIA_AI_TOOLS = ["world.slow_tools.Ring", "world.slow_tools.SendTheBoy"]
"""
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    shutil.copy(SLOW_TOOLS, evennia.root / "world")
    with started(evennia):
        yield evennia


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    """The demo builder, in the room of the ferryman, who has the tools."""
    with builder_beside_npc(game) as connection:
        shown(connection, f"ai/tools oren = {', '.join(TOOLS)}")
        yield connection


class Stage:
    """The game during one scene, which begins when the stage is made."""

    def __init__(self, game: Evennia, builder: Connection, stub: StubServer) -> None:
        self.builder = builder
        self._game = game
        self._stub = stub
        self._asked_before = len(stub.requests)
        self._newest = {table: self._newest_of(table) for table in ("turn", "record")}

    def model(self, *behaviours: Behaviour) -> None:
        """Set the behaviours of the model for the next requests."""
        self._stub.behaves(*behaviours)

    def says(self, line: str) -> None:
        self.builder.send(f"say {line}")
        self.builder.wait_for("^You say", seconds=60)

    def waits_for_request(self, number: int) -> None:
        """Wait until the model has got this many requests in this scene."""
        self._stub.wait_for_requests(self._asked_before + number, within_seconds=60)

    def reloads(self) -> None:
        reload(self._game)

    def over(self, *, read_after: str = "") -> Scene:
        """Ask one more question, and return what the scene left."""
        self.model(answers(HERE))
        self.says(THIRD)
        self.builder.wait_for(f'^Oren says, "{HERE}"', seconds=60)
        self.builder.wait_for_quiet()
        requests = self._stub.requests[self._asked_before :]
        return Scene(
            read_after=read_after,
            questions=[_question(request.body["messages"]) for request in requests],
            turns=self._rows("turn", "state, outcome"),
            records=self._rows("record", "kind, body"),
            last_request=requests[-1].body["messages"],
        )

    def _newest_of(self, table: str) -> int:
        ((newest,),) = rows_of(self._game, f"SELECT coalesce(max(id), 0) FROM evennia_ai_{table}")
        return newest

    def _rows(self, table: str, columns: str) -> list[tuple[str, str]]:
        query = f"SELECT {columns} FROM evennia_ai_{table} WHERE id > {self._newest[table]}"
        return [(first, second) for first, second in rows_of(self._game, f"{query} ORDER BY id")]


def _question(messages: list[dict[str, Any]]) -> str:
    """Return the last line of a player in a request."""
    said = [message["content"] for message in messages if message["role"] == "user"]
    return said[-1].splitlines()[0].partition(": ")[2]


Play = Callable[[Stage], Scene]
Playing = Callable[[Play], Scene]


def asking(stage: Stage) -> Scene:
    """Reload while the model works on one question and a second one of the same speaker waits."""
    stage.model(stalls_until_left, answers(TIDE))
    stage.says(FIRST)
    stage.waits_for_request(1)
    stage.says(SECOND)
    stage.reloads()
    read = stage.builder.wait_for(f'^Oren says, "{TIDE}', seconds=60)
    return stage.over(read_after=read)


def speaking(stage: Stage) -> Scene:
    """Reload after the NPC has said the first sentence of a streaming reply."""
    stage.model(streams_and_stalls(event(delta("The tide turns. It "))))
    stage.says(FIRST)
    stage.builder.wait_for('^Oren says, "The tide turns."', seconds=60)
    stage.reloads()
    return stage.over()


def acting(stage: Stage) -> Scene:
    """Reload after the bell tool ran, while the model works on its result."""
    stage.model(calls("ring", "{}"), stalls_until_left)
    stage.says(FIRST)
    stage.waits_for_request(2)
    stage.reloads()
    return stage.over()


def sending(stage: Stage) -> Scene:
    """Reload while the boy's errand is running."""
    stage.model(calls("send_the_boy", "{}"), answers("I have sent the boy."))
    stage.says(FIRST)
    stage.builder.wait_for('^Oren says, "I have sent', seconds=60)
    stage.reloads()
    stage.model(calls("errand_result", '{"number": 1}'), answers("He is not back."))
    stage.says(SECOND)
    stage.builder.wait_for('^Oren says, "He is not back', seconds=60)
    return stage.over()


@pytest.fixture(scope="module")
def played(game: Evennia, builder: Connection, stub: StubServer) -> Playing:
    """A function that plays a scene at its first use, and returns what it left."""
    known: dict[Play, Scene] = {}

    def once(play: Play) -> Scene:
        if play not in known:
            known[play] = play(Stage(game, builder, stub))
        return known[play]

    return once


@pytest.mark.parametrize("play", [asking, speaking, acting])
def test_turn_interrupted_by_a_reload_is_closed_with_a_reason(played: Playing, play: Play) -> None:
    scene = played(play)
    interrupted = [outcome for state, outcome in scene.turns if state == "interrupted"]
    assert interrupted == [STOPPED]
    assert ("run_end", STOPPED) in scene.records
    assert "open" not in [state for state, _ in scene.turns]


@pytest.mark.parametrize(
    ("play", "questions"),
    [
        (asking, [FIRST, SECOND, THIRD]),
        (speaking, [FIRST, THIRD]),
        (acting, [FIRST, FIRST, THIRD]),
        (sending, [FIRST, FIRST, SECOND, SECOND, THIRD]),
    ],
)
def test_model_is_asked_again_after_a_reload_only_if_the_npc_had_not_acted(
    played: Playing, play: Play, questions: list[str]
) -> None:
    assert played(play).questions == questions


@pytest.mark.parametrize(
    ("play", "said"),
    [
        (asking, [TIDE, HERE]),
        (speaking, ["The tide turns. —", HERE]),
        (acting, [HERE]),
        (sending, ["I have sent the boy.", "He is not back.", HERE]),
    ],
)
def test_each_reply_is_recorded_once_over_a_reload(
    played: Playing, play: Play, said: list[str]
) -> None:
    assert played(play).said == said


def test_waiting_questions_are_answered_after_a_reload(game: Evennia, played: Playing) -> None:
    assert f'Oren says, "{TIDE}"' in played(asking).read_after
    assert "lines to NPCs from before the server stopped: 2 answered now" in logs_of(game)


def test_tools_do_not_run_again_after_a_reload(game: Evennia, played: Playing) -> None:
    played(acting), played(sending)
    used = (game.root / "tools_used").read_text(encoding="utf-8").split()
    assert sorted(used) == ["ring", "send_the_boy"]


def test_prompt_after_a_reload_has_the_tool_call_and_its_result(played: Playing) -> None:
    messages = played(acting).last_request
    (at,) = [index for index, message in enumerate(messages) if _calls(message) == ["ring"]]
    assert messages[at + 1]["role"] == "tool"
    assert messages[at + 1]["content"] == "The bell rings out over the water."


def test_running_errand_is_lost_by_a_reload_and_the_npc_is_informed(
    game: Evennia, played: Playing
) -> None:
    records = played(sending).records
    assert rows_of(game, "SELECT state FROM evennia_ai_errand") == [("lost",)]
    told = "Errand 1 (send_the_boy) has ended; errand_result tells the outcome."
    assert [body for kind, body in records if kind == "event" and "Errand" in body] == [told]
    result = [body for kind, body in records if kind == "tool_result"][-1]
    assert "The server stopped before it ended" in result


def test_server_log_has_no_traceback_after_reloads(game: Evennia, played: Playing) -> None:
    for play in (asking, speaking, acting, sending):
        played(play)
    assert "Traceback" not in logs_of(game)


def _calls(message: dict[str, Any]) -> list[str]:
    """Return the names of the tools that a message calls."""
    return [call["function"]["name"] for call in message.get("tool_calls", ())]
