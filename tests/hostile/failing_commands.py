"""Commands that raise errors in the running game. `test_errors` copies this file into it."""

from typing import Any

from django.db import InterfaceError, OperationalError
from evennia import CmdSet, Command

SERVER = 'connection to server at "10.0.0.7", port 4630 failed: Connection refused'
PATH = "/srv/harbour/secret_settings.py"
ERRORS: dict[str, Exception] = {
    "away": OperationalError(f"connection failed: {SERVER}\n\tIs the server running on that host?"),
    "closed": InterfaceError(SERVER),
    "path": FileNotFoundError(2, "No such file or directory", PATH),
    "lines": RuntimeError(f"first\n{PATH}\n{SERVER}"),
    "markup": ValueError(f"|r{PATH}|n {{braces}} |lclook|ltlook|le"),
    "bytes": UnicodeDecodeError("utf-8", PATH.encode(), 0, 1, "invalid start byte"),
    "long": RuntimeError(f"{PATH} " * 300),
    "empty": ZeroDivisionError(),
}
WHERE = ("at_pre_cmd", "parse", "func")


def give(room: Any) -> None:
    """Give everybody in the room a command for each error and each place where it is raised."""
    commands = CmdSet()
    commands.key = "failing"
    for name, error in ERRORS.items():
        for where in WHERE:
            commands.add(_failing(f"{name}{where.replace('_', '')}", error, where))
    room.cmdset.add(commands)


def _failing(key: str, error: Exception, where: str) -> Command:
    def fails(_: Command) -> None:
        raise error

    return type(f"Cmd{key}", (Command,), {"key": key, "func": lambda _: None, where: fails})()
