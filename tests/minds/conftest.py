"""The small stage of the game's tests: what an NPC was told is read back after somebody played."""

from tests.game.conftest import _cast, logged, stage

__all__ = ["_cast", "logged", "stage"]
