"""Fixtures for commands. Evennia starts only when a test module imports it, not here at the top."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _cast(world: Callable[[], AbstractContextManager[None]]) -> Iterator[tuple[int, ...]]:
    """Create the cast once for all tests of a file, because it takes longer than most tests."""
    from tests.commands.stage import a_cast
    from tests.conftest import once_a_process

    with world():
        yield once_a_process(a_cast)


@pytest.fixture
def stage(_cast: tuple[int, ...], db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the harbour with a builder, a player and an NPC.

    Work in other threads is done at once.
    """
    from twisted.internet.defer import maybeDeferred

    from evennia_ai.commands import background_work
    from tests.commands.stage import Stage

    monkeypatch.setattr(background_work, "in_thread", maybeDeferred)
    return Stage(_cast)


@pytest.fixture(scope="module")
def beforehand(
    _cast: tuple[int, ...], world: Callable[[], AbstractContextManager[None]]
) -> Iterator[Callable[[Callable[[Any], Any]], Any]]:
    """Return a decorator that prepares the stage once for all tests of a file.

    Every test finds the prepared state in the database. The objects are new in each test, with the
    same IDs.
    """
    from twisted.internet.defer import maybeDeferred

    from evennia_ai.commands import background_work
    from tests.commands.stage import Stage
    from tests.conftest import forget_objects

    def done(work: Callable[[Any], Any]) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(background_work, "in_thread", maybeDeferred)
            made = work(Stage(_cast))
        forget_objects()
        return made

    with world():
        yield done


@pytest.fixture
def card_folder(stage: Any, tmp_path: Path) -> Iterator[Path]:
    """Return a card folder with `oren.json`, and put a card next to it that must not be read."""
    from django.test import override_settings

    from tests.commands.card_files import OREN, as_json

    cards = tmp_path / "cards"
    cards.mkdir()
    (cards / "oren.json").write_bytes(as_json(OREN))
    (tmp_path / "secret.json").write_bytes(as_json(OREN))
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(cards)):
        yield cards


@pytest.fixture
def mood(stage: Any) -> str:
    """Create a component of the builder at ID 1200."""
    stage.builds("component/create mood = 1200, system: The air is heavy.")
    return "mood"
