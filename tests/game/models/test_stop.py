"""Stopping: no model is asked while the game is stopped, whoever asks."""

from typing import Any

import pytest

from evennia_ai.game.models.stop import is_paused, is_stopped, why_halted
from evennia_ai.store.calls.halts import Halt, halt, release

STOP = Halt(npc_ref="", halted_by="Mira", halted_at=5.0, reason="spam")


@pytest.fixture(autouse=True)
def _fresh(stage: Any) -> None:
    """A database and snapshots of the test's own."""


def test_the_game_is_stopped_until_it_is_released() -> None:
    assert is_stopped() == ""
    halt(STOP)
    assert is_stopped() == "stopped by Mira: spam"
    release("")
    assert is_stopped() == ""


def test_a_paused_npc_is_paused_alone(stage: Any) -> None:
    halt(Halt(npc_ref=stage.npc.ai.ref, halted_by="Mira", halted_at=5.0))
    assert is_paused(stage.npc)
    assert not is_paused(stage.anna)
    assert why_halted(stage.npc.ai.ref) == "paused by Mira"
    assert is_stopped() == ""


def test_a_stopped_game_halts_every_npc_without_pausing_it(stage: Any) -> None:
    halt(STOP)
    assert why_halted(stage.npc.ai.ref) == "stopped by Mira: spam"
    assert not is_paused(stage.npc)
