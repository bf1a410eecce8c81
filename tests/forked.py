"""Being a process that a program has forked, which has imported what it needs.

To import Evennia takes longer than most processes of tests live.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn


def become(work: Callable[[], int], *, out: str, err: str) -> NoReturn:
    """Do this work with these files as output, and end with the status that it returns.

    What it raises is written to `err`, and the status is then that of a traceback.
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
