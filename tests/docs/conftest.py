"""The demo village, built once for all the examples that are typed in it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

IN_GAME = (
    "test_files.py",
    "test_followed.py",
    "test_generated.py",
    "test_own_game.py",
    "test_printed.py",
    "test_offline_talk.py",
    "test_help_examples.py",
    "test_tutorial.py",
)
"""Modules here whose examples need a started Evennia; it must not be imported at their top."""


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Have Evennia started before a module that needs it is imported."""
    from tests import conftest

    if collector.path.name in IN_GAME:
        conftest._start_evennia_for(conftest.TESTS / "commands")


@pytest.fixture(scope="module")
def _built() -> Iterator[None]:
    """The demo village as a first start leaves it, until the module is done."""
    from tests.docs.village import build_village

    with _forgotten():
        build_village()
        yield


@pytest.fixture
def village(_built: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The demo village with its builder in it; what is changed is forgotten afterwards."""
    from tests.docs.village import Village

    with _forgotten():
        village = Village(tmp_path, monkeypatch)
        yield village
        village.close()


@pytest.fixture
def own_game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A new game with a builder in it and nothing else; it is forgotten afterwards."""
    from tests.docs.village import OwnGame

    with _forgotten():
        game = OwnGame(tmp_path, monkeypatch)
        yield game
        game.close()


@contextmanager
def _forgotten() -> Iterator[None]:
    """A block after which the database is as before and Evennia's caches are empty."""
    from django.db import transaction
    from evennia.utils.idmapper.models import SharedMemoryModel

    with transaction.atomic():
        yield
        transaction.set_rollback(True)
    for kind in _kinds(SharedMemoryModel):
        kind.flush_instance_cache(force=True)


def _kinds(parent: type) -> Iterator[Any]:
    """The classes below a class whose objects Evennia keeps, those with an editor open too."""
    for kind in parent.__subclasses__():
        if hasattr(kind, "__dbclass__"):
            yield kind
        yield from _kinds(kind)
