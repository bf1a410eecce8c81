"""Play the demo's evening on a real server, over telnet: both ways to the secret, and spoiling it.

A builder moves the evening on, so nothing waits for the tide. First nobody has a model, then the
village speaks through a script.
"""

import json
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.telnet import Connection
from tests.acceptance.games import logged_in, logs_of, running_game, shown

pytestmark = pytest.mark.server

SCRIPT = {
    "replies": [
        {"when": "in the cellar", "reply": "*counts on* Eleven meshes."},
        {"when": "And now", "reply": "You know where the hoop is."},
    ]
}
SETTINGS = """
EVENNIA_AI_PROFILES = {
    "default": {"client": "offline"},
    "scripted": {"client": "scripted", "script": "world/evening.json"},
}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
"""
TO_THE_LETTER = (
    ("ask oren about the cellar", "knocks on nights of fog"),
    ("aboard", "Two thwarts"),
    ("!on", "This is the Salt Stage"),
    ("ashore", "pressed salt into your palm"),
    ("east", "one smell"),
    ("east", "basket"),
    ("get letter", "one of the seven letters"),
    ("read letter", "find a door"),
    ("west", "one smell"),
    ("west", "lie here long"),
    ("aboard", "Two thwarts"),
    ("!on", "third plank of the landing"),
    ("ashore", "Thirty feet"),
    ("!on", "It is night in Ebbwick"),
    ("north", "Granite"),
    ("west", "level"),
    ("down", "Her shoes are dry"),
    ("whisper oren = What passes behind the ferry by night?", "moved her mooring nine feet"),
    ("talk brida = What is in the cellar?", "My cellar floods"),
)
GIVEN_BACK = (
    ("show letter to brida", "That is my hand"),
    ("give letter to brida", "watches the letter to the end"),
    ("talk brida = What is in the cellar?", "Behind the third barrel"),
    ("down", "never flooded"),
    ("read ledger", "nothing is also a taking"),
    ("oak door", "water on the other side"),
)
BY_THE_STEPS = (
    ("evening/again", "nobody has told you anything"),
    ("up", "level"),
    ("east", "Granite"),
    ("north", "thrift"),
    ("up", "mostly of sky"),
    ("look tide book", "count of twenty"),
    ("talk ismay = What are the dots in the margin?", "not so loud"),
    ("whisper ismay = What are the dots in the margin?", "to the fourteenth"),
    ("down", "thrift"),
    ("south", "Granite"),
    ("south", "Thirty feet"),
    ("south", "mooring post"),
    ("down", "eighth step is under water"),
    ("!on", "dry as far as the fourteenth"),
    ("down", "made|cut for longer legs"),
    ("oak door", "One could knock"),
    ("knock once, then twice", "stops counting"),
    ("knock twice, then once", "somebody lifts a hoop"),
    ("oak door", "Odile"),
    ("talk odile = What about the skiff?", "Eleven sacks come over in the Wagtail"),
    ("evening", "So that is what knocks"),
)
SPOILT = (
    ("evening/again", "nobody has told you anything"),
    ("!letter", ""),
    ("give letter to pell", "changes the round cap"),
    ("read receipt", "I regret that I cannot thank you"),
    ("talk pell = What about the letter?", "As harbourmaster, I now know"),
    ("!inn", ""),
    ("down", "does not ask you anything back"),
    ("talk brida = What is in the cellar?", "since you went to Pell"),
    ("!steps", ""),
    ("down", "A green net is stretched"),
)


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    files = {"world/evening.json": json.dumps(SCRIPT)}
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings=SETTINGS, files=files) as evennia:
        yield evennia


def plays(player: Connection, builder: Connection, lines: tuple[tuple[str, str], ...]) -> str:
    """Type the lines, each until its words are read. The builder types those that begin with !."""
    read = ""
    for typed, until in lines:
        if typed == "!on":
            player.wait_for_quiet(quiet_seconds=0)
            builder.send("evening/on")
            player.wait_for(until, seconds=60)
        elif typed == "!letter":
            shown(builder, "@teleport anna = the chapel without a bell", until="Teleported")
            shown(player, "get letter", until="seven letters")
            shown(builder, "@teleport anna = the harbour office", until="Teleported")
            player.wait_for("One room, three hooks", seconds=60)
        elif typed.startswith("!"):
            room = {"!inn": "the dry oar", "!steps": "the bell steps"}[typed]
            shown(builder, f"@teleport anna = {room}", until="Teleported")
        else:
            read += shown(player, typed, until=until)
    return read


def test_evening_is_played_on_both_ways_and_spoilt(game: Evennia) -> None:
    demo = read_demo(game.root / "world" / "build_demo.py")
    with logged_in(game, *demo.player) as player, logged_in(game, *demo.builder) as builder:
        plays(player, builder, TO_THE_LETTER)
        plays(player, builder, GIVEN_BACK)
        plays(player, builder, BY_THE_STEPS)
        plays(player, builder, SPOILT)
        _asks_a_model(player, builder)
    assert "Traceback" not in logs_of(game)


def _asks_a_model(player: Connection, builder: Connection) -> None:
    """The model's prompt has the secret only for somebody who has found it out.

    Wren has not spoken of it in this game, so it is not in her history either.
    """
    shown(builder, "ai/profile wren = scripted")
    shown(player, "evening/again", until="nobody has told you")
    shown(builder, "@teleport anna = the net loft", until="Teleported")
    shown(player, "talk wren = What is in the cellar?", until="Eleven meshes")
    assert "barrel is a door" not in shown(builder, "ai/context wren = full", until="sha256")
    shown(builder, "@tag anna = trusted:found")
    shown(player, "talk wren = And now? The cellar?", until="where the hoop is")
    assert "barrel is a door" in shown(builder, "ai/context wren = full", until="sha256")
