"""Test `kill -9` of a game on PostgreSQL, and the loss of its connections, at steps of a turn.

The scenes are those of `test_kill.py` and `test_kill_compacting.py`. Only some steps are tried,
because commits do not depend on the step.
"""

from collections.abc import Iterator

import pytest

from tests.acceptance.doomed import Life, PostgresGame
from tests.acceptance.doomed_steps import THE_END, committed_open_turns, committed_records
from tests.acceptance.test_kill import ASKS, RECOVERS, SCENES, Recovery, Scene, death_of, recovery
from tests.acceptance.test_kill_compacting import COMPACTS, TALKS, shown_summaries, summaries
from tests.store.postgres import shared_cluster

pytestmark = [pytest.mark.service, pytest.mark.minutes(1)]

SAMPLED = ("an answer", "a tool", "two who ask")
DEATHS = 7
"""The number of kills in a scene: evenly over its steps, the last at its end."""
COMPACTING_DEATHS = 5
DISCONNECTED = 10


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresGame]:
    folder = tmp_path_factory.mktemp("doomed_postgres")
    made = PostgresGame(folder, shared_cluster(folder))
    yield made
    made.close()


@pytest.fixture(scope="module", params=SAMPLED)
def deaths(request: pytest.FixtureRequest, game: PostgresGame) -> list[Recovery]:
    scene = SCENES[request.param]
    begun = game.new(request.param.replace(" ", "_"), before=scene.before)
    steps = len(_whole(game, begun, scene).steps)
    return [_death(game, begun, scene, at=at) for at in _spread(steps, DEATHS)]


def _whole(game: PostgresGame, begun: str, scene: Scene) -> Life:
    return game.lives(game.copy(begun), scene.acts, model=scene.model)


def _spread(steps: int, most: int) -> list[int]:
    """Return `most` steps, evenly spaced from 1. The last is beyond the end of the scene."""
    return [*(1 + steps * one // (most - 1) for one in range(most - 1)), steps * 2]


def _death(game: PostgresGame, begun: str, scene: Scene, *, at: int | str) -> Recovery:
    database = game.copy(begun)
    acts = [*scene.acts, ["dies"]]
    life = game.lives(database, acts, model=scene.model, trouble="kill", at=at)
    if life.steps[-1:] != [THE_END]:
        assert not life.is_over
    return recovery(game, database, death_of(database, life))


@pytest.fixture(scope="module")
def compactions(game: PostgresGame) -> list[Recovery]:
    begun = game.new("compacting", before=TALKS)
    scene = Scene(acts=tuple(COMPACTS))
    steps = len(_whole(game, begun, scene).steps)
    return [
        _death(game, begun, scene, at=at) for at in ("asked", *_spread(steps, COMPACTING_DEATHS))
    ]


def test_postgres_keeps_committed_records_and_chains_after_a_kill(deaths):
    for death in deaths:
        assert death.left[-len(death.life.stored) :] == death.life.stored or not death.life.stored
        assert death.after.stored[: len(death.left)] == death.left
        assert [report["broken"] for report in death.after.reports] == [[], []]


def test_npc_on_postgres_says_only_committed_lines(deaths):
    for death in deaths:
        assert death.life.heard_too_early == death.after.heard_too_early == set()


def test_unanswered_lines_on_postgres_are_answered_once_after_a_kill(deaths):
    for death in deaths:
        told = (death.step, len(death.after.all("asked")), death.unanswered)
        assert told[1] == 1 + told[2], told
        assert len(death.life.all("ran")) <= 1
        assert death.after.all("ran") == []
        assert death.after.is_over
        assert "Traceback" not in death.after.log


def test_prompt_on_postgres_shows_the_whole_old_or_new_segment_after_a_kill(compactions):
    assert {shown_summaries(death) for death in compactions} == {0, 1}
    first = compactions[0]
    assert first.step == "asked"
    assert any("<transcript>" in body for *_, body in first.left)


def test_npc_on_postgres_answers_after_a_kill_in_compaction(compactions):
    for death in compactions:
        assert death.after.stored[: len(death.left)] == death.left
        assert [report["broken"] for report in death.after.reports] == [[], []]
        assert any(line.startswith("Aye") for line in death.after.heard)
        assert "Traceback" not in death.after.log
        status = " ".join(" ".join(death.after.reports[0]["status"]).split())
        assert ("compacted by a model" in status) == bool(summaries(death.left))


def test_game_recovers_when_postgres_ends_its_connections(game):
    """A restart of PostgreSQL ends all connections, at any step and of any thread."""
    begun = game.new("disconnected")
    steps = len(_whole(game, begun, SCENES["an answer"]).steps)
    for at in _spread(steps, DISCONNECTED)[:-1]:
        database = game.copy(begun)
        acts = [*ASKS, ["passes", 20], *RECOVERS[2:]]
        life = game.lives(database, acts, trouble="disconnect", at=at)

        assert life.is_over, (at, life.log)
        assert life.heard, (at, life.log)
        assert life.heard_too_early == set()
        assert committed_open_turns(database) == 0, at
        assert [report["broken"] for report in life.reports] == [[]]
        assert len({one for one, *_ in committed_records(database)}) > 2
