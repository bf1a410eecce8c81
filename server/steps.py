"""Running commands so that somebody at a terminal sees how far they are: one line a step.

Standard library only: this runs before anything is installed.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Shown = Callable[[str], str | None]
"""What is shown of a line that a command says: a text, or nothing of it."""

_PERCENT = re.compile(r"\[ *(\d+%)\]$")
"""How far pytest is, at the end of its lines."""


class StepError(Exception):
    """Something that ends the run; the text is for the person at the terminal."""


def say(text: str) -> None:
    """Print `text` at once, whatever standard output is connected to."""
    print(text, flush=True)


def everything(line: str) -> str | None:
    """Show each line as it is."""
    return line


def nothing(line: str) -> str | None:
    """Show no line; a failing step still shows all of them."""
    return None


def run(
    title: str,
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    shown: Shown = everything,
    limit_seconds: float = 1800,
) -> str:
    """Run `command` under a title, showing what `shown` makes of its lines; returns all of them.

    Raises:
        StepError: the command failed or took too long; everything it said has been printed.
    """
    line = _Line(title)
    clock = Clock()
    with subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        limit = threading.Timer(limit_seconds, process.kill)
        limit.start()
        lines = [line.show(each.rstrip("\n"), shown) for each in process.stdout]
        took = clock.ended(process)
        limit.cancel()
    output = "\n".join(lines)
    if process.returncode:
        line.end("failed")
        if shown is not everything:
            say(output)
        raise StepError(f"{title}: failed with status {process.returncode}")
    line.end(f"done in {took}")
    return output


class Clock:
    """What a process takes, from its start to its end."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def ended(self, process: "subprocess.Popen[Any]") -> str:
        """Wait for it: `31 s (CPU 58 s)`, with those that it waited for, not with daemons."""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        cpu_seconds = used.ru_utime + used.ru_stime
        return f"{time.monotonic() - self._began:.0f} s (CPU {cpu_seconds:.0f} s)"


class _Line:
    """The line of a step: its title, how far it is, how it ended; and what it shows, below it."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._open = True
        print(f"== {title}", end="", flush=True)

    def show(self, line: str, shown: Shown) -> str:
        """Show of `line` what is to be shown; returns the line."""
        if (text := shown(line)) is not None:
            if self._open:
                say("")
                self._open = False
            say(f"   {text}".rstrip())
        elif self._open and sys.stdout.isatty() and (percent := _PERCENT.search(line)):
            print(f"\r== {self._title}: {percent[1]} ", end="", flush=True)
        return line

    def end(self, how: str) -> None:
        """Say how it ended, on the same line where nothing was shown."""
        if not self._open:
            say(f"   {how}")
        elif sys.stdout.isatty():
            say(f"\r== {self._title}: {how}")
        else:
            say(f": {how}")
