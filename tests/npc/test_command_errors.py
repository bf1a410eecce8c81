"""What a player reads, and what the log contains, after an error in a command."""

from collections.abc import Callable
from typing import Any

import django.db
import pytest
from django.test import override_settings

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.command_errors import DATABASE_AWAY, UNEXPECTED, hide_errors

ADDRESS = 'connection to server at "10.0.0.7", port 4630 failed: Connection refused'
AWAY = django.db.OperationalError(f"connection failed: {ADDRESS}\n\tIs the server running?")
SECRETS = ("10.0.0.7", "4630", "/srv/harbour", "Traceback", "line ", ".py", "Error")


def _raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


# The error that a command raises, and whether the player reads that the database is unavailable.
ERRORS: dict[str, tuple[Exception, bool]] = {
    "the database is away": (AWAY, True),
    "a connection was ended": (django.db.InterfaceError("the connection is closed"), True),
    "a table is locked": (django.db.OperationalError("database is locked"), True),
    "our store, because of the database": (_raised_from(StoreError("not read"), AWAY), True),
    "an error because of the database": (_raised_from(KeyError("x"), AWAY), True),
    "a path": (FileNotFoundError(2, "No such file", "/srv/harbour/secret.json"), False),
    "an address": (ConnectionRefusedError(f"{ADDRESS}"), False),
    "a message of several lines": (RuntimeError("/srv/harbour/a.py\n10.0.0.7\n4630"), False),
    "markup": (ValueError("|r/srv/harbour/a.py|n {braces} %s"), False),
    "no message": (ZeroDivisionError(), False),
}
WHERE = ("at_pre_cmd", "parse", "func", "at_post_cmd")
"""The methods of a command, in the order in which Evennia calls them."""


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the lines of the log. Evennia's own functions are restored after the test."""
    from evennia.commands import cmdhandler
    from evennia.utils import logger

    lines: list[str] = []
    for name in ("_msg_err", "ErrorReported"):
        monkeypatch.setattr(cmdhandler, name, getattr(cmdhandler, name))
    monkeypatch.setattr(logger, "_log", lambda text, *_, **__: lines.append(str(text)))
    return lines


@pytest.fixture
def types(stage: Any) -> Callable[[Exception, str], str]:
    """Let a player type a command that raises an error in a method. Return what they read."""
    from evennia.commands.cmdhandler import cmdhandler
    from evennia.commands.command import Command

    def typed(error: Exception, where: str, line: str = "") -> str:
        def fails(_: Command) -> None:
            raise error

        methods = {"key": "fails", "func": lambda _: None, where: fails}
        command = type("CmdFails", (Command,), methods)
        stage.anna.screen.sent.clear()
        cmdhandler(stage.anna, line, callertype="object", cmdobj=command())
        return "\n".join(stage.anna.screen.plain())

    return typed


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("name", ERRORS)
def test_player_reads_one_sentence_and_log_has_traceback_when_command_fails(
    name: str, where: str, types: Callable[[Exception, str], str], log: list[str]
) -> None:
    error, is_database_away = ERRORS[name]
    hide_errors()
    shown = types(error, where)
    assert "\n" not in shown.strip()
    assert not [secret for secret in SECRETS if secret in shown]
    assert (DATABASE_AWAY in shown) is is_database_away
    assert (UNEXPECTED.partition("{")[0] in shown) is not is_database_away
    assert any("Traceback" in line and str(error) in line for line in log)


@pytest.mark.parametrize("where", WHERE)
def test_log_contains_nothing_of_the_typed_line_when_command_fails(
    where: str, types: Callable[..., str], log: list[str]
) -> None:
    hide_errors()
    types(AWAY, where, "anna pass-word-4711")
    assert "User input was: '19 characters, which are not logged'." in log
    assert not [line for line in log if "4711" in line]


def test_player_reads_time_that_log_has_when_command_fails(
    types: Callable[[Exception, str], str], log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evennia.utils import logger

    monkeypatch.setattr(logger, "timeformat", lambda *_: "2026-11-28 17:00:00+00:00")
    hide_errors()
    assert "2026-11-28 17:00:00+00:00" in types(KeyError("x"), "func")


def test_developer_reads_traceback_when_game_shows_errors_on_purpose(
    types: Callable[[Exception, str], str], log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from evennia.commands import cmdhandler

    monkeypatch.setattr(cmdhandler, "_IN_GAME_ERRORS", True)
    with override_settings(IN_GAME_ERRORS=True):
        hide_errors()
        assert "Traceback" in types(KeyError("x"), "func")


@pytest.mark.parametrize(
    ("in_game_errors", "debug", "is_warned"),
    [(True, False, True), (False, False, False), (True, True, False), (False, True, False)],
)
def test_check_warns_when_players_read_tracebacks_and_nobody_develops(
    in_game_errors: bool, debug: bool, is_warned: bool
) -> None:
    from evennia_ai.checks import check_connections

    with override_settings(IN_GAME_ERRORS=in_game_errors, DEBUG=debug):
        found = [one.id for one in check_connections()]
    assert ("evennia_ai.W030" in found) is is_warned
