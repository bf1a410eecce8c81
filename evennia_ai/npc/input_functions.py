"""Handle frames with an unknown name from clients: log one short line.

Evennia would log the whole frame, up to 4 MB, even before a login. The app adds this module to
`INPUT_FUNC_MODULES`. Evennia calls the function `default` for each frame whose name has no
function.
"""

from typing import Any

from evennia.utils.logger import log_warn

_MOST_LOGGED = 5
"""The most unknown frames that are logged for one connection."""


def default(session: Any, name: str, /, *arguments: Any, **options: Any) -> None:
    """Log the name and the size of an unknown frame."""
    session.ndb.unknown_frames = (session.ndb.unknown_frames or 0) + 1
    if session.ndb.unknown_frames <= _MOST_LOGGED:
        log_warn(
            f"A client at {session.address} sent {name[:40]!r}, a frame without an input function"
            f" (INPUT_FUNC_MODULES), with {len(arguments)} arguments and {len(options)} options."
        )
    if session.protocol_flags.get("INPUTDEBUG", False):
        session.msg(f"{name[:40]!r} has no input function in this game.")
