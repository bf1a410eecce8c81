"""Test `kill -9` at every step of a correction, an undo and a reset: each happens wholly or not.

One test also kills at random steps during mixed acts of players and builders, with branches.
"""

import random

import pytest

from tests.acceptance.doomed import Act, Game
from tests.acceptance.doomed_steps import committed_open_turns, committed_records
from tests.acceptance.test_kill import Deaths, Scene, deaths_of

pytestmark = pytest.mark.service

TALKS: list[Act] = [
    act
    for number in range(3)
    for act in (["says", "Anna", f"Oren, is it foggy on day {number}?"], ["passes", 2])
]
KILLS = 12
MOST_STEPS = 90
"""About the number of steps in a life of five mixed acts."""
CORRECTED = "Foggy as ever."
CONTROLS: list[Act] = [["controls", CORRECTED]]
SHOWN = [
    ((0, 1, 2), False),
    ((0, 1, 2), True),
    ((0, 1), True),
    ((), False),
]
"""By the number of committed controls: the days in the prompt, and whether it is corrected."""


@pytest.fixture(scope="module")
def deaths(doomed_game: Game) -> Deaths:
    """The deaths at each step of the three controls, with their recoveries."""
    begun = doomed_game.new("controls", before=TALKS)
    return deaths_of(doomed_game, begun, Scene(acts=tuple(CONTROLS)))


def controls(records: list[list]) -> int:
    return sum(role == "system" and not body for _, _, role, body in records)


@pytest.mark.req("S2-08")
def test_prompt_matches_the_committed_corrections_after_a_kill(deaths):
    found = set()
    for death in deaths.recovered:
        (prompt,) = death.after.all("asked")
        said = [message["content"] for message in prompt if message["role"] != "system"]
        days = tuple(day for day in range(3) if any(f"day {day}" in text for text in said))
        shown = days, any(CORRECTED in text for text in said)
        found.add(controls(death.left))
        assert shown == SHOWN[controls(death.left)]

    assert found == {0, 1, 2, 3}


def test_records_and_chains_are_intact_after_a_kill_in_a_correction(deaths):
    for death in deaths.recovered:
        assert death.after.stored[: len(death.left)] == death.left
        assert [report["broken"] for report in death.after.reports] == [[], []]


def test_npc_answers_after_a_kill_in_a_correction(deaths):
    for death in deaths.recovered:
        assert any(line.startswith("Aye") for line in death.after.heard)
        assert "Traceback" not in death.after.log


def test_game_recovers_from_kills_during_random_mixed_actions(doomed_game):
    database = doomed_game.new("mixed", before=TALKS)
    dice = random.Random(17)
    died, left = 0, committed_records(database)
    for _ in range(KILLS):
        acts = [["starts"], ["mixes", dice.randrange(10**6), 5]]
        at = dice.randint(1, MOST_STEPS)
        life = doomed_game.lives(database, acts, trouble="kill", at=at)
        died += not life.is_over
        assert "Traceback" not in life.log
        before, left = left, committed_records(database)
        assert [number for number, *_ in left[: len(before)]] == [one for one, *_ in before]

    last = doomed_game.lives(database, [["starts"], ["mixes", 1, 5], ["verifies"], ["replays"]])
    assert died > KILLS // 2
    assert last.reports[0]["broken"] == []
    assert last.all("unlike") == [[]]
    assert committed_open_turns(database) == 0
