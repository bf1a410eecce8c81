"""What the Server does with a frame whose name it does not know: one short line in the log.

Evennia writes the whole frame into the log, 4 MB of it if a client sends so much, before any login.

The app adds this module to `INPUT_FUNC_MODULES`; each function here answers frames of its name.
"""

from typing import Any

from evennia.utils.logger import log_warn

_MOST_LOGGED = 5
"""Unknown frames of one connection that the log names."""


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
