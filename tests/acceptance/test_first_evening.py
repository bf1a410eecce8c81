"""Test a builder's first conversations with a new NPC on a real server, over telnet.

The NPC is made by `create/drop` and its model follows a script. The conversations are held once,
and the tests read what was printed.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, running_game, shown

pytestmark = pytest.mark.server

FALLBACK = "Ask Oren, the water is loud."
SCRIPT = {
    "replies": [
        {"when": "good evening", "reply": '*She smiles.* "Good evening." *Her eyes narrow.*'},
        {"when": "what do you sell", "reply": "Three things:\n- rope\n- tar\n1. |rbread"},
        {"when": "storm", "fail": "unavailable"},
        {"when": "still there", "reply": "Still here."},
    ]
}
BOTH = r"(?s)^Oren .*^Hanna |^Hanna .*^Oren "
"""Matches when both NPCs have spoken."""
SETTINGS = """
EVENNIA_AI_PROFILES = {
    "default": {"client": "scripted", "script": "world/evening.json"},
    "quiet": {"client": "offline"},
}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evening:
    """What the builder read after each command."""

    made: str
    greeted: str
    sold: str
    storm: str
    after_storm: str
    prompt: str
    history: str
    greeting: str
    both: str
    refused: str
    log: str
    limits: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    files = {"world/evening.json": json.dumps(SCRIPT)}
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings=SETTINGS, files=files) as evennia:
        yield evennia


@pytest.fixture(scope="module")
def evening(game: Evennia) -> Evening:
    with builder_beside_npc(game) as builder:
        return played(builder)


def played(builder: Connection) -> Evening:
    """Hold the conversations, and return what the builder read."""
    shown(builder, "create/drop Hanna:evennia_ai.typeclasses.AINPC")
    made = shown(builder, "ai/history hanna")
    shown(builder, f"@set hanna/fallback_line = {FALLBACK}")
    shown(builder, "ai/profile oren = quiet")
    greeted = shown(builder, "say Hanna, good evening.", until="eyes narrow")
    sold = shown(builder, "say Hanna, what do you sell?", until="bread")
    storm = shown(builder, "say Hanna, what of the storm?", until=FALLBACK)
    after_storm = shown(builder, "say Hanna, still there?", until="Still here")
    prompt = shown(builder, "ai/context hanna = full")
    history = shown(builder, "ai/history hanna")
    shown(builder, "card/greeting oren = 0")
    greeting = shown(builder, "whisper Oren = Good evening.", until="only looking")
    shown(builder, "card/greeting oren = off")
    shown(builder, "ai/profile hanna = quiet")
    both = shown(builder, "say Oren, Hanna, what of the ferry?", until=BOTH)
    shown(builder, "ai/profile hanna = default")
    shown(builder, "ai/set hanna = limits calls_per_day=1")
    refused = shown(builder, "say Hanna, still there?", until="raises a hand")
    return Evening(
        made=made,
        greeted=greeted,
        sold=sold,
        storm=storm,
        after_storm=after_storm,
        prompt=prompt,
        history=history,
        greeting=greeting,
        both=both,
        refused=refused,
        log=shown(builder, "ai/log hanna"),
        limits=shown(builder, "ai/limits hanna"),
    )


def lines_of(text: str, *names: str) -> list[str]:
    """Return the lines that begin with one of these names."""
    return [line for line in text.splitlines() if line.startswith(names)]


def test_new_npc_has_no_history(evening: Evening) -> None:
    assert "Nothing is recorded of Hanna yet." in evening.made


def test_poses_and_speech_of_a_reply_are_separate_lines(evening: Evening) -> None:
    assert lines_of(evening.greeted, "Hanna") == [
        "Hanna smiles.",
        'Hanna says, "Good evening."',
        "Hanna's eyes narrow.",
    ]


def test_list_in_a_reply_keeps_its_lines(evening: Evening) -> None:
    assert 'Hanna says, "Three things:\n  - rope\n  - tar\n  1. |rbread"' in evening.sold


def test_card_greeting_is_shown_as_poses_and_whispers(evening: Evening) -> None:
    said = lines_of(evening.greeting, "Oren")
    assert said[0] == 'Oren whispers to you, "Evening. Mind the third plank, it has opinions."'
    assert said[1].startswith("Oren does not look up from his splice, but he moves")
    assert said[2] == 'Oren whispers to you, "Crossing, or only looking?"'
    assert '""' not in evening.greeting


def test_npc_named_in_a_fallback_line_stays_silent(evening: Evening) -> None:
    assert lines_of(evening.storm, "Hanna", "Oren") == [f'Hanna says, "{FALLBACK}"']


def test_fallback_line_is_in_the_history_but_not_in_the_prompt(evening: Evening) -> None:
    assert "fallback" in evening.history
    assert FALLBACK in evening.history
    assert 'Hanna says, "Still here."' in evening.after_storm
    assert "what of the storm" in evening.prompt
    assert FALLBACK not in evening.prompt


def test_two_addressed_npcs_without_a_model_answer_once_each(evening: Evening) -> None:
    speakers = [line.split()[0] for line in lines_of(evening.both, "Hanna", "Oren")]
    assert sorted(speakers) == ["Hanna", "Oren"]


def test_refused_player_sees_a_gesture_and_the_limit_is_logged(evening: Evening) -> None:
    assert "Hanna raises a hand" in evening.refused
    assert "refused: say by " in evening.log
    assert "Refused today" in evening.limits
    assert "the NPC's calls per day" in evening.limits
