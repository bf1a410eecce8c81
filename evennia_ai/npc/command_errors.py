"""What a player reads after an unexpected error in a command: one sentence instead of details.

With Evennia's default `IN_GAME_ERRORS = True`, players read the whole traceback. With False, they
still read the text of the exception, which often contains a path or the address of the database.
This module shows one sentence, and writes the traceback to the log. Evennia also logs the whole
line that the player typed, which may be a password or a whisper. This module logs only its length.
"""

from typing import Any, Final

from django.conf import settings
from evennia.commands import cmdhandler
from evennia.utils import logger
from twisted.python.failure import Failure

from evennia_ai.store.core.reading import is_of_database

DATABASE_AWAY: Final = (
    "Your command was not finished: the game's database does not answer. Try again in a minute."
)
UNEXPECTED: Final = (
    "Your command was not finished because of an error in the game. The log has it under"
    " {time}: tell the staff this time and what you typed."
)

_EVENNIAS: Final = (cmdhandler._msg_err, cmdhandler.ErrorReported)


def hide_errors() -> None:
    """Make commands report errors with `report_error`, unless the game wants tracebacks.

    Evennia has no setting for this. So this function replaces two names in Evennia: the function
    that reports every error in a command, and the exception that makes the log line.
    """
    ours = (report_error, ReportedError)
    shown = _EVENNIAS if settings.IN_GAME_ERRORS else ours
    cmdhandler._msg_err, cmdhandler.ErrorReported = shown


class ReportedError(cmdhandler.ErrorReported):
    """The exception with which Evennia ends a command after it reported an error.

    It keeps only the length of the typed line.
    """

    def __init__(self, raw_string: str) -> None:
        super().__init__(f"{len(raw_string)} characters, which are not logged")


def report_error(receiver: Any, _texts: tuple[str, str], cmdid: Any = None) -> None:
    """Log the current exception, and show `receiver` one sentence about it.

    The arguments are those of Evennia's function that this one replaces.
    """
    problem = Failure()
    logger.log_trace()
    if is_of_database(problem.value):
        shown = DATABASE_AWAY
    else:
        shown = UNEXPECTED.format(time=logger.timeformat())
    receiver.msg(cmdhandler.err_helper(shown, cmdid=cmdid))
