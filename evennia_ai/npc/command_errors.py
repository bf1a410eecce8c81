"""What a player reads when a command raises an error that nobody foresaw.

With `IN_GAME_ERRORS = True`, Evennia's default, that is the whole traceback. With False Evennia
still shows the last line of it, which is the text of the exception: often a path, or the address
of the database. Here it is one sentence instead, and the log has the traceback. Evennia also logs
the whole line that was typed, which may be a password or a whisper; here it logs its length.
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
    """Have commands report errors by `report_error`, unless the game shows tracebacks on purpose.

    Evennia has no setting for this. The function replaced here makes the text of every error that
    reaches Evennia's command handler, the exception holds the line that is logged after it.
    """
    ours = (report_error, ReportedError)
    shown = _EVENNIAS if settings.IN_GAME_ERRORS else ours
    cmdhandler._msg_err, cmdhandler.ErrorReported = shown


class ReportedError(cmdhandler.ErrorReported):
    """Evennia raises it after it reported an error. It keeps the length of the typed line alone."""

    def __init__(self, raw_string: str) -> None:
        super().__init__(f"{len(raw_string)} characters, which are not logged")


def report_error(receiver: Any, _texts: tuple[str, str], cmdid: Any = None) -> None:
    """Log the current exception with its traceback, and show `receiver` one sentence about it.

    The arguments are those of Evennia's own function.
    """
    problem = Failure()
    logger.log_trace()
    if is_of_database(problem.value):
        shown = DATABASE_AWAY
    else:
        shown = UNEXPECTED.format(time=logger.timeformat())
    receiver.msg(cmdhandler.err_helper(shown, cmdid=cmdid))
