"""Run work in forked processes, a few at a time. Each begins with the state of its parent."""

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

Work = Callable[[], Any]
"""The work of a child process. It must return what JSON can express."""
MOST_TOLD = 3000
"""How many of the last characters of a child's output are reported."""


class ChildError(Exception):
    """A child process failed. The text has the end of its output."""


def each(works: list[Work], *, at_once: int, limit_seconds: int) -> Iterator[tuple[int, Any]]:
    """Yield the index of each work with its result, or a `ChildError`, as the work ends."""
    with tempfile.TemporaryDirectory() as folder:
        waiting = list(enumerate(works))[::-1]
        running: dict[int, int] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                number, work = waiting.pop()
                running[_started(work, Path(folder) / str(number), limit_seconds)] = number
            process, status = _ended(running)
            number = running.pop(process)
            yield number, _returned(Path(folder) / str(number), status, limit_seconds)


def _ended(processes: Iterable[int]) -> tuple[int, int]:
    """Wait until one of these processes ends, and return it with its status.

    Other child processes of this one are ignored.
    """
    while True:
        for process in processes:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return ended, status
        time.sleep(0.01)


def _started(work: Work, path: Path, limit_seconds: int) -> int:
    """Start the process that does `work`."""
    sys.stdout.flush()
    sys.stderr.flush()
    if process := os.fork():
        return process
    code = 1
    try:
        # This ends the process at once. Python's own handler would wait until a C function returns.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(limit_seconds)
        with path.with_suffix(".log").open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        path.write_text(json.dumps(work()), encoding="utf-8")
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _returned(path: Path, status: int, limit_seconds: int) -> Any:
    if status == 0:
        return json.loads(path.read_text(encoding="utf-8"))
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return ChildError(f"it took more than {limit_seconds} seconds")
    log = path.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    return ChildError(log[-MOST_TOLD:])
