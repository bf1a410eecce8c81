"""What a player reads after an unexpected error of a command.

With `IN_GAME_ERRORS = True`, Evennia's default, that is the whole traceback. With False, Evennia
still shows the text of the exception, often a path or the address of the database. This module
shows one sentence, and the log has the traceback. Evennia also logs the whole typed line, which may
be a password or a whisper; this module logs its length.
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

    Evennia has no setting for this, so two of its names are replaced: the function that renders
    every error of its command handler, and the exception with the line that is logged.
    """
    ours = (report_error, ReportedError)
    shown = _EVENNIAS if settings.IN_GAME_ERRORS else ours
    cmdhandler._msg_err, cmdhandler.ErrorReported = shown


class ReportedError(cmdhandler.ErrorReported):
    """Raised by Evennia after it reported an error. It keeps only the length of the line."""

    def __init__(self, raw_string: str) -> None:
        super().__init__(f"{len(raw_string)} characters, which are not logged")


def report_error(receiver: Any, _texts: tuple[str, str], cmdid: Any = None) -> None:
    """Log the current exception, and show `receiver` one sentence about it.

    The arguments are those of Evennia's function.
    """
    problem = Failure()
    logger.log_trace()
    if is_of_database(problem.value):
        shown = DATABASE_AWAY
    else:
        shown = UNEXPECTED.format(time=logger.timeformat())
    receiver.msg(cmdhandler.err_helper(shown, cmdid=cmdid))
