"""Fixtures of a game with its characters, in the test's own process."""

from tests.commands.conftest import _cast, beforehand, stage  # noqa: F401
