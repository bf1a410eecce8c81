"""A game with its people in the test's own process, as commands have it."""

from tests.commands.conftest import _cast, beforehand, stage  # noqa: F401
