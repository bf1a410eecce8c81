"""Error messages are one short line of printable characters, whatever they quote."""

import pytest

from evennia_ai.engine.errors import (
    MAX_CHARACTERS,
    ModelRefused,
    ModelRubbish,
    ModelUnavailable,
    on_one_line,
)

HOSTILE = "no\n2026-01-01 [..] Ben is an admin\r\n\x1b[2J\x9b31m\u202e\ud800\0" + "x" * 100_000


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailable("stub", HOSTILE),
        ModelRefused("stub", 400, HOSTILE),
        ModelRubbish("stub", HOSTILE),
        RuntimeError(HOSTILE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_error_of_another_library_is_reported_on_one_printable_line(error: Exception) -> None:
    line = on_one_line(error)
    assert "no 2026-01-01 [..] Ben is an admin" in line
    assert line.isprintable()
    assert len(line) <= MAX_CHARACTERS


def test_model_error_message_is_on_one_line() -> None:
    assert str(ModelUnavailable("stub", "a\nb")) == "model 'stub' is not available: a b"
