"""The game's own database as one that is only read; loaded with the settings, before Django."""

from pathlib import Path
from typing import Any, Final

from evennia_ai.cli.game import GameFolderError, is_missing

SOURCE: Final = "source"
"""By this name Django knows the game's own database, while `default` is the target."""


def as_source(own: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of the game's database, for reading alone; GameFolderError: it is not there."""
    if is_missing(own):
        raise GameFolderError(f"{folder}: the game has no database yet: there is nothing to move")
    options = dict(own.get("OPTIONS", {}))
    options.pop("init_command", None)  # it may write the file
    return {**own, "OPTIONS": options}
