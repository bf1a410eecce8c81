"""Fixtures that change settings of the game until the end of a test."""

from tests.store.conftest import settings_of_ai, settings_of_game

__all__ = ["settings_of_ai", "settings_of_game"]
