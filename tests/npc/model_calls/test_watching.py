"""Watchers get reports of turns, and their errors do not affect the game."""

from typing import Any

from evennia_ai.npc.model_calls.limits import Refusal
from evennia_ai.npc.model_calls.watching import Watch, Watcher

REFUSAL = Refusal(scope="npc", ref="5", limit="calls_per_day", told="", retry_in_seconds=1.0)


class Listening(Watcher):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def turn_began(self, turn: Any) -> None:
        self.told.append(("began", turn.npc_ref, turn.began_at))

    def turn_ended(self, turn: Any, outcome: Any, ended_at: float) -> None:
        self.told.append(("ended", turn.npc_ref, outcome, ended_at))

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        self.told.append(("refused", npc_ref, refusal.limit))

    def dropped(self, npc_ref: str, count: int, why: str) -> None:
        self.told.append(("dropped", npc_ref, count, why))


class Broken(Watcher):
    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        raise ValueError("somebody else's bug")


def test_all_watchers_get_begin_and_end_of_a_turn() -> None:
    times = iter([10.0, 12.5])
    one, other = Listening(), Listening()
    watch = Watch([one, other], now=lambda: next(times))
    watch.turn_began("5", npc_name="Oren", conversation=1)
    watch.turn_ended("5", "answered")
    assert one.told == other.told == [("began", "5", 10.0), ("ended", "5", "answered", 12.5)]


def test_end_of_a_turn_without_a_reported_begin_is_not_reported() -> None:
    watcher = Listening()
    Watch([watcher], now=lambda: 0.0).turn_ended("5", "answered")
    assert watcher.told == []


def test_dropped_answers_are_reported_only_when_there_are_some() -> None:
    watcher = Listening()
    watch = Watch([watcher], now=lambda: 0.0)
    watch.dropped("5", count=0, why="stopped")
    watch.dropped("5", count=2, why="stopped")
    assert watcher.told == [("dropped", "5", 2, "stopped")]


def test_failing_watcher_is_logged_and_the_others_get_the_report(logged: list[str]) -> None:
    watcher = Listening()
    Watch([Broken(), watcher], now=lambda: 0.0).refused("5", REFUSAL)
    assert watcher.told == [("refused", "5", "calls_per_day")]
    assert logged == [
        'evennia_ai: the watcher Broken raised an error: ValueError("somebody else\'s bug")'
    ]


def test_clock_is_not_read_without_watchers() -> None:
    def nobody_asks() -> float:
        raise AssertionError("asked")

    watch = Watch(now=nobody_asks)
    watch.turn_began("5", npc_name="Oren", conversation=1)
    watch.turn_ended("5", "answered")
