"""Fixtures of store tests: each test has its own database and begins with empty caches."""

from collections.abc import Callable, Iterator

import pytest


@pytest.fixture(autouse=True)
def _fresh(db: None) -> Iterator[None]:
    from evennia_ai.store.core.snapshots import forget_everything

    forget_everything()
    yield
    forget_everything()


@pytest.fixture
def settings_of_game() -> Iterator[Callable[..., None]]:
    """Change Django settings until the end of the test."""
    from django.test import override_settings

    changed = []

    def change(**values: object) -> None:
        changed.append(override_settings(**values))
        changed[-1].enable()

    yield change
    for override in reversed(changed):
        override.disable()


@pytest.fixture
def settings_of_ai(settings_of_game: Callable[..., None]) -> Callable[..., None]:
    """Change our own settings, by their names without the prefix."""

    def change(**values: object) -> None:
        settings_of_game(**{f"EVENNIA_AI_{name}": value for name, value in values.items()})

    return change
