"""The small stage of the game's tests: what an NPC was told is read back after somebody played."""

from tests.npc.conftest import _cast, logged, stage
from tests.store.conftest import _fresh

__all__ = ["_cast", "_fresh", "logged", "stage"]
