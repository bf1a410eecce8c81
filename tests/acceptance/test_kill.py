"""Test `kill -9` at every step of a turn: committed records survive, and the NPC goes on.

Each scene is played once for each of its steps, in a database of its own. The process is killed at
that step. Then another process starts with the same database, as a restarted server does.
"""

import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.doomed import Act, Game, Life
from tests.acceptance.doomed_steps import (
    THE_END,
    committed_open_turns,
    committed_records,
    committed_state,
    committed_unanswered,
)

pytestmark = [pytest.mark.service, pytest.mark.minutes(2)]

STOPPED = "the server stopped before the reply"
ASKS: list[Act] = [["says", "Anna", "Oren?"], ["passes", 2]]
RECOVERS: list[Act] = [
    ["starts"],
    ["reports"],
    ["says", "Anna", "Oren, are you there?"],
    ["passes", 6],  # also answers what was said before the kill
    ["verifies"],
]
MOMENTS = {
    "before INSERT INTO evennia_ai_record",
    "before INSERT INTO evennia_ai_turn",
    "before UPDATE evennia_ai_turn SET",
    "before a commit",
    "after a commit",
    "asked",
    "before Anna reads",
    "before a tool runs",
    "after a tool ran",
}
RANDOM_KILLS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The acts of a scene. `before` is played without a kill; `interrupted` adds a killed turn."""

    acts: tuple[Act, ...] = tuple(ASKS)
    model: str = "answers"
    before: tuple[Act, ...] = ()
    interrupted: bool = False
    writer: bool = True
    """Whether a separate thread commits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A killed life, and the records that it left."""

    step: str
    life: Life
    left: list[list]
    unanswered: int
    open_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery(Death):
    """A death, and the life of the process that started afterwards."""

    after: Life


@dataclass(frozen=True, slots=True, kw_only=True)
class Deaths:
    """A death at each step of a scene. Between two commits, all deaths leave equal databases."""

    each: list[Death]
    recovered: list[Recovery]
    """One recovery for each different database that the deaths left."""


SCENES = {
    "an answer": Scene(),
    "an answer that is written in place": Scene(writer=False),
    "a later answer": Scene(before=tuple(ASKS)),
    "a greeting": Scene(before=(["greets"],)),
    "a whisper": Scene(acts=(["whispers", "Anna", "Oren?"], ["passes", 2])),
    "a model that fails": Scene(model="fails"),
    "two who ask": Scene(acts=(["says", "Ben", "Oren!"], *ASKS, ["passes", 3])),
    "a tool": Scene(model="uses a tool"),
    "a restart": Scene(interrupted=True, acts=tuple(RECOVERS)),
}


@pytest.fixture(scope="module")
def begun(doomed_game: Game) -> dict[str, Path]:
    """For each scene, a database in which the scene can begin."""
    return {name: _begun(doomed_game, name, scene) for name, scene in SCENES.items()}


@pytest.fixture(scope="module", params=SCENES)
def deaths(request: pytest.FixtureRequest, doomed_game: Game, begun: dict[str, Path]) -> Deaths:
    """The deaths at each step of a scene."""
    return deaths_of(doomed_game, begun[request.param], SCENES[request.param])


def _begun(game: Game, name: str, scene: Scene) -> Path:
    database = game.new(name.replace(" ", "_"), before=scene.before)
    if scene.interrupted:
        assert committed_open_turns(database) == 0
        # The step's number differs if the writer commits two jobs at once, so use its name.
        game.lives(database, ASKS, trouble="kill", at="asked")
        assert committed_open_turns(database) == 1
    return database


def deaths_of(game: Game, begun: Path, scene: Scene) -> Deaths:
    """Kill a life at each step of the scene, and at the scene's end.

    The number of steps differs between lives, because the writer may put two jobs into one
    commit. Each life kills itself at its end, so the last database has the effect of all steps.
    """
    each: list[Death] = []
    recovered: dict[str, Recovery] = {}
    while not each or each[-1].step != THE_END:
        database = game.copy(begun)
        each.append(_death(game, database, scene, at=len(each) + 1))
        left = committed_state(str(database))
        if left not in recovered:
            recovered[left] = recovery(game, database, each[-1])
    assert len(each) >= len(recovered) > 1
    return Deaths(each=each, recovered=list(recovered.values()))


def _death(game: Game, database: Path, scene: Scene, *, at: int) -> Death:
    """Kill a life at a step, or at the end of the scene if the end comes first."""
    acts = [*scene.acts, ["dies"]]
    life = game.lives(database, acts, model=scene.model, writer=scene.writer, trouble="kill", at=at)
    assert not life.is_over
    return death_of(database, life)


def death_of(database: Path, life: Life) -> Death:
    """Return what a killed life left in the database."""
    # The first connection rolls back what was not committed; here it is a reader.
    left, open_turns = committed_records(database), committed_open_turns(database)
    return Death(
        step=life.steps[-1] if life.steps else "nothing yet",
        life=life,
        left=left,
        unanswered=committed_unanswered(database),
        open_turns=open_turns,
    )


def recovery(game: Game, database: Path, death: Death) -> Recovery:
    """Restart from the database of the death, and return the death with the new life."""
    return Recovery(
        step=death.step,
        life=death.life,
        left=death.left,
        unanswered=death.unanswered,
        open_turns=death.open_turns,
        after=game.lives(database, RECOVERS),
    )


def bodies(records: list[list], role: str) -> list[str]:
    return [body for _, _, record_role, body in records if record_role == role]


def test_scenes_contain_every_kind_of_step(doomed_game, begun):
    steps = [
        step
        for name, scene in SCENES.items()
        for step in doomed_game.lives(
            doomed_game.copy(begun[name]), scene.acts, model=scene.model
        ).steps
    ]
    assert set(steps) >= MOMENTS
    assert len(steps) > 100


def test_committed_records_survive_a_kill_at_each_step(deaths):
    for death in deaths.each:
        assert death.left[-len(death.life.stored) :] == death.life.stored or not death.life.stored
    for death in deaths.recovered:
        assert death.after.stored[: len(death.left)] == death.left


def test_record_chains_are_intact_after_a_kill_at_each_step(deaths):
    for death in deaths.recovered:
        assert [report["broken"] for report in death.after.reports] == [[], []]


@pytest.mark.req("S2-01")
def test_model_is_asked_only_after_the_turn_is_committed(deaths):
    lives = [*(death.life for death in deaths.each), *(one.after for one in deaths.recovered)]
    asked = [line for life in lives for line in life.told if "asked" in line]
    assert asked
    assert all(line["open_turns"] == 1 for line in asked)


def test_npc_says_only_committed_lines_before_and_after_a_kill(deaths):
    lives = [*(death.life for death in deaths.each), *(one.after for one in deaths.recovered)]
    assert [life.heard_too_early for life in lives] == [set()] * len(lives)


@pytest.mark.req("S2-29")
def test_interrupted_turn_is_closed_recorded_and_logged_after_a_kill(deaths):
    for death in deaths.recovered:
        first_report = "\n".join(death.after.reports[0]["status"])
        closed = bodies(death.after.stored, "system").count(STOPPED)
        assert closed - bodies(death.left, "system").count(STOPPED) == death.open_turns
        assert (f"interrupted: {STOPPED}" in first_report) >= bool(death.open_turns)
        assert ("interrupted" in death.after.log) == bool(death.open_turns)


def test_npc_answers_after_a_kill_at_each_step(deaths):
    for death in deaths.recovered:
        assert death.after.is_over
        assert any(line.startswith("Aye") for line in death.after.heard)
        assert "Traceback" not in death.after.log


@pytest.mark.req("S2-29")
def test_each_tool_call_has_one_result_in_the_prompt_after_a_kill(deaths):
    for death in deaths.recovered:
        assert death.after.all("asked")
        for prompt in death.after.all("asked"):
            calls = [call for message in prompt for call in message["calls"]]
            results = [message["answers"] for message in prompt if message["answers"]]
            assert calls == results, death.step


def test_unanswered_lines_are_answered_once_after_a_kill(deaths):
    for death in deaths.recovered:
        told = (death.step, len(death.after.all("asked")), death.unanswered)
        # Lines of one speaker that wait together get one answer.
        assert 1 <= told[1] <= 1 + told[2], told


def test_tool_does_not_run_again_after_a_kill(deaths):
    for death in deaths.each:
        assert len(death.life.all("ran")) <= 1
    for death in deaths.recovered:
        assert death.after.all("ran") == []


def test_game_recovers_from_kills_at_random_moments(doomed_game):
    """The test kills the process from outside, at moments that need not be steps."""
    database = doomed_game.new("random")
    begin = time.monotonic()
    doomed_game.lives(database, RECOVERS)
    usual_seconds = time.monotonic() - begin
    dice = random.Random(20)
    left = committed_records(database)
    for _ in range(RANDOM_KILLS):
        before = left
        life = doomed_game.is_killed(
            database, RECOVERS, after_seconds=dice.uniform(0, usual_seconds)
        )
        left = committed_records(database)
        assert left[: len(before)] == before
        assert all(record in left for record in life.stored)

    last = doomed_game.lives(database, [*RECOVERS, ["passes", 2 * RANDOM_KILLS]])
    assert [report["broken"] for report in last.reports] == [[], []]
    assert last.heard
    assert committed_open_turns(database) == 0
