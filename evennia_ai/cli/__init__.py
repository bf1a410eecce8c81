"""`evennia-ai`: the same engine without the game, from files.

Exit status: 0 well, 1 a finding, 2 bad input. Bad input is one line on standard error, never a
traceback, and nothing on standard output.
"""

import sys
from collections.abc import Sequence

from evennia_ai.cli.output import refuse
from evennia_ai.errors import EvenniaAIError

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit status of the command line for `arguments`, those of the process by default."""
    import click

    from evennia_ai.cli.commands import evennia_ai

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # player text in a terminal of another encoding
            stream.reconfigure(errors="backslashreplace")
    try:
        status = evennia_ai.main(arguments, prog_name="evennia-ai", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        return refuse(error.format_message())
    except (EvenniaAIError, RecursionError) as error:
        return refuse(error)
    except SystemExit:  # click's way to say that the reader of our output is gone
        return 0
    return status if isinstance(status, int) else 0
