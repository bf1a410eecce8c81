"""Test a crowd on a real server, on SQLite and PostgreSQL: each line is answered once or refused.

`python -m benchmarks.load` measures speed; this test does not.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.load import Load, measured, report
from tests.store.postgres import shared_cluster

pytestmark = [pytest.mark.server, pytest.mark.minutes(3)]

SHORT = Load(
    npcs=24,
    players=12,
    seconds=12.0,
    idle_looks=10,
    pause_seconds=3.0,
    most_latency=2.0,
)


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_every_line_is_answered_once_or_refused_under_load(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], database: str
) -> None:
    address = shared_cluster(tmp_path).make("load") if database == "PostgreSQL" else ""
    felt = measured(replace(SHORT, database=address), tmp_path / "game")
    with capsys.disabled():
        print(f"\n{report(felt, SHORT)}")

    assert felt.said > 30
    assert felt.answered_often == 0
    assert felt.answered_once + felt.refused >= felt.said
    assert felt.lost == []
    assert set(felt.turns) == {"done"}
