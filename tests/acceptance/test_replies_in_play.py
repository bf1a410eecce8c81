"""A real server and a model that wraps its replies in every way: players read only speech."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, copied_game, logged_in, rows_of, started
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = pytest.mark.server

ROWS = yaml.safe_load(
    Path(__file__).parents[1].joinpath("npc/speech/replies.yaml").read_text(encoding="utf-8")
)
OWN_NAMES = re.compile("Mira|mira|Мира|ミラ|米拉")
OTHER_NAMES = re.compile("Анна|アンナ|安娜")
SHAPES = [
    OTHER_NAMES.sub("Anna", OWN_NAMES.sub("Oren", row["reply"])) for row in ROWS if "odd" not in row
]
"""The replies of the table that are not only watched, with the names of the demo."""

MACHINE_TALK = re.compile(
    r"[<>{}`｜�]|\*\*|\|\||^ *#|\[/?[A-Z]|\b(?:tool_call|assistant|user|arguments|print|Response|"
    r"Antwort|Réponse|Respuesta|in character)\b|Would you like me|Thinking Process|"
    r"Of course I will|Anna (?:nods|says)|Tamsin",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evening:
    """What was seen of an evening, and what the history and the last prompt hold of it."""

    anna: str
    builder: str
    recorded: list[str]
    last_prompt: str


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evening]:
    stub = StubServer()
    profile = {"base_url": stub.base_url, "model": "tiny", "max_retries": 0}
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {profile!r}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
EVENNIA_AI_LIMITS = {{"player": {{"calls_per_minute": 1000}}, "npc": {{"calls_per_minute": 1000}}}}
"""
    game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
    try:
        with started(game), builder_beside_npc(game) as builder:
            demo = read_demo(game.root / "world" / "build_demo.py")
            with logged_in(game, *demo.player) as anna:
                anna.wait_for_quiet()
                yield play(game, stub, anna, builder)
    finally:
        stub.close()


def play(game: Evennia, stub: StubServer, anna: Connection, builder: Connection) -> Evening:
    """Let Anna ask once for each reply of the table."""
    read = ""
    before = ended_turns(game)
    for number, reply in enumerate(SHAPES):
        stub.behaves(answers(reply))
        anna.send(f"say Oren, what of the {number}th tide?")
        wait_for_turns(game, before + number + 1)
        read += anna.wait_for_quiet(quiet_seconds=0.05)
    stub.behaves(answers("Good night."))
    anna.send("say Oren, good night.")
    read += anna.wait_for("Good night", seconds=60) + anna.wait_for_quiet()
    query = "SELECT body FROM evennia_ai_record WHERE role = 'assistant' ORDER BY id"
    return Evening(
        anna=read,
        builder=builder.wait_for_quiet(),
        recorded=[body for (body,) in rows_of(game, query)],
        last_prompt=json.dumps(stub.requests[-1].body["messages"], ensure_ascii=False),
    )


def ended_turns(game: Evennia) -> int:
    ((count,),) = rows_of(game, "SELECT count(*) FROM evennia_ai_turn WHERE state <> 'open'")
    return count


def wait_for_turns(game: Evennia, count: int) -> None:
    ends = time.monotonic() + 60
    while ended_turns(game) < count:
        assert time.monotonic() < ends, f"the turn {count} did not end"
        time.sleep(0.02)


def test_evening_plays_at_least_a_hundred_shapes() -> None:
    assert len(SHAPES) >= 100


def test_no_player_reads_machine_talk(evening: Evening) -> None:
    spoken = [
        line
        for screen in (evening.anna, evening.builder)
        for line in screen.splitlines()
        if line.startswith("Oren")
    ]
    assert len(spoken) >= len(SHAPES)
    assert [line for line in spoken if MACHINE_TALK.search(line)] == []


def test_whispers_in_prose_reach_only_their_listener(evening: Evening) -> None:
    assert 'Oren whispers to you, "Come at midnight."' in evening.anna
    assert "Come at midnight" not in evening.builder


def test_neither_history_nor_prompts_contain_machine_talk(evening: Evening) -> None:
    assert [body for body in evening.recorded if MACHINE_TALK.search(body)] == []
    assert "Would you like me" not in evening.last_prompt
    assert "```" not in evening.last_prompt
