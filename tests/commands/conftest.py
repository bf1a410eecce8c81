"""Evennia starts when the first test module here is imported: nothing of it at the top."""

from typing import Any

import pytest


@pytest.fixture
def stage(db: None) -> Any:
    """The harbour with a builder, a player and an NPC."""
    from tests.commands.stage import Stage

    return Stage()


@pytest.fixture
def mood(stage: Any) -> str:
    """A component of the builder's own, at ID 1200."""
    stage.builds("component/create mood = 1200, system: The air is heavy.")
    return "mood"
