"""The demo village, built once for all examples that are typed in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

IN_GAME = (
    "test_demo_kept.py",
    "test_files.py",
    "test_followed.py",
    "test_generated.py",
    "test_own_game.py",
    "test_printed.py",
    "test_offline_talk.py",
    "test_help_examples.py",
    "test_tutorial.py",
    "test_demo_evening.py",
)
"""Modules whose examples need a started Evennia. They must not import it at their top."""


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Start Evennia before a module that needs it is imported."""
    from tests import conftest

    if collector.path.name in IN_GAME:
        conftest._start_evennia_for(conftest.TESTS / "commands")


@pytest.fixture(scope="module")
def _built() -> Iterator[None]:
    """Build the demo village as its first start does, for all tests of a module."""
    from tests.conftest import once_a_process
    from tests.docs.village import build_village

    with _forgotten():
        once_a_process(build_village)
        yield


@pytest.fixture
def village(_built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The demo village with its builder in it. Changes are undone after each test."""
    from tests.docs.village import Village

    with _forgotten():
        village = Village(tmp_path, monkeypatch)
        yield village
        village.close()


@pytest.fixture
def own_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A new game with nothing but a builder in it. Changes are undone after each test."""
    from tests.docs.village import OwnGame

    with _forgotten():
        game = OwnGame(tmp_path, monkeypatch)
        yield game
        game.close()


@contextmanager
def _forgotten() -> Iterator[None]:
    """Undo all changes to the database after a block, and empty Evennia's caches."""
    from django.db import transaction
    from evennia.utils.idmapper.models import SharedMemoryModel

    from evennia_ai.store.core.snapshots import forget_everything

    forget_everything()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    forget_everything()
    for kind in _kinds(SharedMemoryModel):
        kind.flush_instance_cache(force=True)


def _kinds(parent: type) -> Iterator[Any]:
    """Return the subclasses of a class whose objects Evennia caches."""
    for kind in parent.__subclasses__():
        if hasattr(kind, "__dbclass__"):
            yield kind
        yield from _kinds(kind)
