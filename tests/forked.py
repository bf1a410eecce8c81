"""Run work in a process that was forked from a program with all imports done.

Importing Evennia takes longer than most test processes run.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn


def become(work: Callable[[], int], *, out: str, err: str) -> NoReturn:
    """Do the work with these files as output, and exit with the status that it returns.

    The traceback of an exception is written to `err`.
    """
    for descriptor, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    status = 70
    try:
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
