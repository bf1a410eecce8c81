"""Test that limits of work allow for a slower machine and for nothing else."""

import time

import pytest

from tests import effort
from tests.effort import little_work, slowness


def test_speed_of_this_machine_is_at_most_the_usual_one(monkeypatch):
    assert slowness() >= 1.0
    monkeypatch.setattr(effort, "_USUAL_SECONDS", 1e-6)
    assert slowness() > 100


def test_work_over_its_limit_on_the_usual_machine_fails(monkeypatch):
    monkeypatch.setattr(effort, "slowness", lambda: 1.5)
    clock = iter([0.0, 1.4, 0.0, 1.6])
    monkeypatch.setattr(time, "process_time", lambda: next(clock))
    with little_work(1.0):
        pass
    with pytest.raises(AssertionError, match=r"took 1\.6 s of processor time, 1\.5 are allowed"):
        with little_work(1.0):
            pass
