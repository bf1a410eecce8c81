"""Running commands so that somebody at a terminal sees how far they are: one line a step.

One that runs in a process of its own while other steps go on shows its output at the end. Standard
library only: this runs before anything is installed.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

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
    limit_seconds: float = 5400,
    times: "Times | None" = None,
) -> str:
    """Run `command` under a title, showing what `shown` makes of its lines; returns all of them.

    What it took is noted in `times`.

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
    if times is not None:
        times.note(title, took)
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

    def ended(self, process: "subprocess.Popen[Any]") -> "Took":
        """Wait for it, with those that it waited for, not with daemons."""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Took(
            seconds=time.monotonic() - self._began, cpu_seconds=used.ru_utime + used.ru_stime
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What a process took; as a text `31 s (CPU 58 s)`."""

    seconds: float
    """By the clock."""
    cpu_seconds: float
    """Of processor time."""

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s (CPU {self.cpu_seconds:.0f} s)"


class Times:
    """What each step of a run took."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Took]] = []

    def note(self, title: str, took: Took) -> None:
        """Note a step that ended."""
        self._steps.append((title, took))

    def table(self) -> str:
        """A line a step, the one with most processor time first, and one for all of them."""
        steps = sorted(self._steps, key=lambda step: -step[1].cpu_seconds)
        width = max((len(title) for title, _ in steps), default=0)
        lines = [
            f"{title:<{width}} {took.seconds:>7.0f} {took.cpu_seconds:>7.0f}"
            for title, took in steps
        ]
        whole = sum(took.cpu_seconds for _, took in steps)
        return "\n".join(
            (
                f"{'seconds':<{width}} {'clock':>7} {'CPU':>7}",
                *lines,
                f"{'all':<{width}} {'':>7} {whole:>7.0f}",
            )
        )


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


LOGS = ".venvs"
"""The folder of the outputs, which git ignores."""


class Meanwhile:
    """A step that was started, and is waited for later: a `with` block ends it for sure."""

    def __init__(
        self,
        title: str,
        command: list[str],
        *,
        root: Path,
        environment: Mapping[str, str],
        shown: Shown = nothing,
        times: Times | None = None,
    ) -> None:
        self.title = title
        self._times = times
        self._shown = shown
        self._log = root / LOGS / f"{title.lower().replace(' ', '-')}.log"
        self._log.parent.mkdir(exist_ok=True)
        self._clock = Clock()
        self._took: Took | None = None
        with self._log.open("w", encoding="utf-8") as output:
            self.process = subprocess.Popen(
                command,
                cwd=root,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._waiter = threading.Thread(target=self._note_its_end, daemon=True)
        self._waiter.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._waiter.is_alive():
            os.killpg(self.process.pid, signal.SIGTERM)
        self._waiter.join()

    def _note_its_end(self) -> None:
        self._took = self._clock.ended(self.process)

    def wait(self) -> None:
        """Wait until it is done, and show what it said.

        Raises:
            StepError: it failed; everything it said has been printed.
        """
        self._waiter.join()
        if self._times is not None and self._took is not None:
            self._times.note(self.title, self._took)
        status = self.process.returncode
        how = "failed after" if status else "done in"
        say(f"== {self.title}: {how} {self._took}, beside the steps above")
        output = self._log.read_text(encoding="utf-8", errors="replace")
        if status:
            say(output)
            raise StepError(f"{self.title}: failed with status {status}")
        for text in filter(None, map(self._shown, output.splitlines())):
            say(f"   {text}")
