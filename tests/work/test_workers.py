"""Workers and games as processes: the same results as in the game, each job applied once."""

import pytest

from tests.work.processes import a_job

pytestmark = pytest.mark.service


def test_workers_make_the_same_as_the_game(cluster, place, tmp_path):
    jobs = [a_job(number, lock=f"npc:{number % 5}") for number in range(20)]
    here = place.game(jobs=jobs, workers={"queue": "inprocess"})
    assert set(place.ends(here).values()) == {"applied"}
    by_game = place.ledger()
    assert len(by_game) == 20

    place.sql("DELETE FROM evennia_ai_memory")
    place.worker("w1")
    place.worker("w2")
    assert set(place.ends(place.game(jobs=jobs)).values()) == {"applied"}
    assert place.ledger() == by_game
    assert place.queued() == 0
