"""How far comparing past turns is, as the bar is told."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from evennia_ai.cli import history


@pytest.fixture
def told(monkeypatch):
    """What a bar was told, and that it was taken away."""
    calls = []

    @contextmanager
    def shown():
        yield lambda *call: calls.append(call)
        calls.append("closed")

    monkeypatch.setattr(history, "shown_progress", shown)
    return calls


def test_the_bar_goes_with_the_turns_and_ends_with_them(told):
    stream = [SimpleNamespace(number=number) for number in (6, 7)]
    assert [one.number for one in history._with_progress(stream, 2)] == [6, 7]
    assert told == [("turns", 1, 2), ("turns", 2, 2), "closed"]


def test_no_turns_end_the_bar_at_once(told):
    assert list(history._with_progress([], 0)) == []
    assert told == ["closed"]
