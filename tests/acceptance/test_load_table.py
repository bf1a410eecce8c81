"""Test what the load benchmark measures in the reactor, and how it reports it."""

import asyncio
from pathlib import Path

import pytest

from benchmarks.load_table import Period, Times, measured_in, slow, table
from benchmarks.load_units import (
    EVENNIA,
    GARBAGE,
    NAMES,
    ROW,
    ROWS,
    SPAN,
    SPANS,
    TURN,
    TURNS,
    UNIT,
    Steps,
    named_at,
)


@pytest.mark.parametrize("place", [*SPANS.values(), *TURNS.values(), *EVENNIA.values()])
def test_measured_function_exists_at_its_import_path(place: str) -> None:
    named = named_at(place)

    assert callable(getattr(named.owner, named.name))


def test_coroutine_time_excludes_waiting() -> None:
    async def waits() -> str:
        await asyncio.sleep(0.05)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 0.01)
        return "done"

    steps = Steps(waits())

    async def measured() -> str:
        return await steps

    assert asyncio.run(measured()) == "done"
    assert steps.processor > 0
    assert steps.took < 0.05


def _written(
    root: Path, names: list[str], rows: list[tuple[float, float, float, int, int]]
) -> None:
    (root / ROWS).parent.mkdir(parents=True)
    (root / NAMES).write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
    half = ROW.pack(*rows[0])[:-1]  # a row that the Server had not finished when it was killed
    (root / ROWS).write_bytes(b"".join(ROW.pack(*row) for row in rows) + half)


def test_load_table_groups_by_period_and_sorts_by_share(tmp_path: Path) -> None:
    idle, loaded = Period("idle", 0.0, 10.0), Period("loaded", 10.0, 20.0)
    rows = [(1.0, 5.0, 4.0, 0, UNIT), (11.0, 2.0, 1.0, 0, UNIT), (12.0, 9.0, 8.0, 1, UNIT)]
    _written(tmp_path, ["wire", "timer"], rows)

    measured = measured_in(tmp_path, [idle, loaded])

    assert [(one.name, list(one.processor)) for one in measured["idle"]] == [("wire", [4.0])]
    assert [one.name for one in measured["loaded"]] == ["timer", "wire"]
    told = table(measured["loaded"], loaded)
    assert "2 units took 0.1 % of a processor" in told
    assert "| timer | 1 | 0.08 % | 8.00 | 8.00 | 8.00 | 9.00 | 9.00 | 9.00 |" in told


def _took(name: str, kind: int, *milliseconds: float) -> Times:
    times = Times(name=name, kind=kind)
    times.processor.extend(milliseconds)
    times.clock.extend(milliseconds)
    return times


def test_slow_report_lists_our_code_and_not_evennia() -> None:
    found = slow(
        [
            _took("recorder", SPAN, 1.0, 21.0),
            _took("garbage", GARBAGE, 19.0),
            _took("Evennia: typed look", SPAN, 50.0),
            _took("wire", UNIT, 50.0),
        ]
    )

    assert found == ["recorder took 21 ms of the reactor once"]


def test_slow_report_lists_a_slow_start_of_turns() -> None:
    (start, *_) = TURNS

    assert slow([_took(start, TURN, *[2.0] * 99, 7.0)]) == []
    assert slow([_took(start, TURN, *[4.0] * 99, 9.0)]) == [
        "the start of a turn took 4.0 ms at p50, asked 3",
        "the start of a turn took 9.0 ms at p99, asked 8",
    ]
