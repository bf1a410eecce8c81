"""Test letters of an NPC on a real server: players read, carry and give them.

One conversation is held over telnet with a scripted model. The tests read what was printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from tests.acceptance.games import (
    builder_beside_npc,
    logged_in,
    logs_of,
    reload,
    rows_of,
    running_game,
    shown,
)

pytestmark = pytest.mark.server

SETTINGS = """
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_PROFILES = {"default": {"client": "scripted", "script": "world/writer.yaml"}}
EVENNIA_AI_WRITINGS = {"a_day": 1}
"""
SCRIPT = r"""
replies:
  - when: write me a letter
    tool_calls:
      - tool: write
        arguments:
          form: letter
          title: "Low water |lcquit|lthere|le"
          text: "Dear friend,\n\nthe ferry leaves at |rdawn|n. $eval(1) {x} http://evil.example"
          to: Tamsin
  - when: you wrote
    reply: There you are.
  - when: enough for today
    reply: My hand is tired.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evening:
    """What the builder's client printed, and the client of the player who got the letter."""

    asked: str
    looked: str
    read: str
    asked_again: str
    read_after_reload: str
    read_by_player: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    files = {"world/writer.yaml": SCRIPT}
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings=SETTINGS, files=files) as evennia:
        yield evennia


@pytest.fixture(scope="module")
def evening(game: Evennia) -> Evening:
    player = read_demo(game.root / "world" / "build_demo.py").player
    with builder_beside_npc(game) as builder, logged_in(game, *player) as other:
        shown(builder, "ai/tools oren = write")
        builder.send("say Oren, write me a letter about the ferry.")
        asked = builder.wait_for("There you are", seconds=60)
        builder.wait_for_quiet()
        looked, read = shown(builder, "look letter"), shown(builder, "read letter")
        builder.send("say Oren, write me a letter about the bell.")
        again = builder.wait_for("My hand is tired", seconds=60)
        reload(game)
        builder.wait_for_quiet()
        after = shown(builder, "read low water")
        shown(builder, f"@teleport/loc {player[0]}")
        shown(builder, f"give letter to {player[0]}")
        return Evening(
            asked=asked,
            looked=looked,
            read=read,
            asked_again=again,
            read_after_reload=after,
            read_by_player=shown(other, "read letter"),
        )


@pytest.mark.req("S0-31")
def test_room_sees_the_npc_hand_over_a_letter(evening: Evening) -> None:
    assert 'gives you a letter "Low water here".' in evening.asked


@pytest.mark.req("S0-31")
def test_look_at_a_letter_names_the_read_command_that_shows_the_text(evening: Evening) -> None:
    assert 'It can be read: read letter "Low water here"' in evening.looked
    assert "ferry" not in evening.looked
    lines = [line.strip() for line in evening.read.splitlines()]
    assert 'letter "Low water here", by Oren' in lines
    assert "the ferry leaves at dawn. $eval(1) {x} http: //evil.example" in lines


def test_second_letter_of_a_day_is_not_written(evening: Evening) -> None:
    assert "gives you" not in evening.asked_again


@pytest.mark.req("S0-31")
def test_letter_survives_a_reload_and_can_be_given_to_a_player(evening: Evening) -> None:
    assert "the ferry leaves at dawn" in evening.read_after_reload
    assert "the ferry leaves at dawn" in evening.read_by_player


def test_tool_call_is_recorded_before_and_the_result_after_the_letter(
    evening: Evening, game: Evennia
) -> None:
    wanted = "SELECT kind, created_at FROM evennia_ai_record WHERE kind IN"
    rows = rows_of(game, f"{wanted} ('tool_call', 'tool_result') ORDER BY id")
    assert [kind for kind, _ in rows] == ["tool_call", "tool_result"] * 2
    ((made,),) = rows_of(
        game,
        "SELECT strftime('%s', db_date_created) FROM objects_objectdb"
        " WHERE db_typeclass_path = 'evennia_ai.npc.writings.Writing' ORDER BY id DESC LIMIT 1",
    )
    assert int(rows[0][1]) <= int(made) <= rows[1][1]


def test_server_log_has_no_traceback_after_writing(evening: Evening, game: Evennia) -> None:
    assert "Traceback" not in logs_of(game)
