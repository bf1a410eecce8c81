"""Use the small stage, on which a test plays turns and then reads them back."""

from tests.npc.conftest import _cast, logged, stage
from tests.store.conftest import _fresh

__all__ = ["_cast", "_fresh", "logged", "stage"]
