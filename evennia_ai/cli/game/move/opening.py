"""The game's own database as a read-only second one. Loaded with the settings, before Django."""

from pathlib import Path
from typing import Any, Final

from evennia_ai.cli.game import GameFolderError, is_missing

SOURCE: Final = "source"
"""Django's alias for the game's own database during a move. `default` is the target."""


def as_source(own: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return settings that only read the game's database. GameFolderError if it does not exist."""
    if is_missing(own):
        raise GameFolderError(f"{folder}: the game has no database yet: there is nothing to move")
    options = dict(own.get("OPTIONS", {}))
    # The command in this option may write to the file.
    options.pop("init_command", None)
    return {**own, "OPTIONS": options}
