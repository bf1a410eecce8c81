"""Run commands under a title, one after another or at the same time.

Each command gets a line with its title and its time. Standard library only, because this runs
before anything is installed.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

Shown = Callable[[str], str | None]
"""A function that gets a line of a command's output and returns what to show, or None."""

_PERCENT = re.compile(r"\[ *(\d+%)\]$")
"""Matches the end of pytest's lines, which tells how many of the tests have run."""


class StepError(Exception):
    """An error that ends the run. Its text is for the person at the terminal."""


def say(text: str) -> None:
    """Print `text` at once, even if standard output is buffered."""
    print(text, flush=True)


def everything(line: str) -> str | None:
    """Show each line unchanged."""
    return line


def nothing(line: str) -> str | None:
    """Show no line. If the step fails, all lines are shown anyway."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a command ended and how long it took. As text: `31 s (CPU 58 s)`."""

    status: int
    """The exit status; 0 means success."""
    output: str
    """Everything that the command printed."""
    seconds: float
    """The elapsed time."""
    cpu_seconds: float
    """The processor time of the command and of the child processes that it waited for."""

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s (CPU {self.cpu_seconds:.0f} s)"


class Times:
    """The outcomes of all steps of a run."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, Outcome]] = []

    def note(self, title: str, outcome: Outcome) -> None:
        """Store the outcome of a step."""
        self._steps.append((title, outcome))

    def table(self) -> str:
        """Return a table with a line for each step, most processor time first, and their sum."""
        steps = sorted(self._steps, key=lambda step: -step[1].cpu_seconds)
        width = max((len(title) for title, _ in steps), default=0)
        whole = sum(outcome.cpu_seconds for _, outcome in steps)
        lines = [f"{title:<{width}} {o.seconds:>7.0f} {o.cpu_seconds:>7.0f}" for title, o in steps]
        head, foot = (f"{'seconds':<{width}} {'clock':>7} {'CPU':>7}", f"{'all':<{width}}")
        return "\n".join((head, *lines, f"{foot} {'':>7} {whole:>7.0f}"))


class Running:
    """A command that runs in the background until somebody asks for its outcome.

    A `with` block ends it. It has a session of its own. So an interrupt reaches it only once, from
    the `with` block, and not from the terminal too.
    """

    def __init__(
        self,
        title: str,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        shown: Shown = nothing,
        times: Times | None = None,
        heard: Callable[[str], None] | None = None,
    ) -> None:
        """Start `command`. `heard` is called with each line of output, in another thread.

        Raises:
            StepError: the program does not exist.
        """
        self.title = title
        self._shown, self._times, self._heard = shown, times, heard
        self._began = time.monotonic()
        try:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise StepError(f"{title}: {error}") from error
        # This is not a thread of our own, because joining one again after an interrupt would not
        # wait.
        reader = ThreadPoolExecutor(1)
        self._outcome = reader.submit(self._read)
        reader.shutdown(wait=False)

    def _read(self) -> Outcome:
        lines = []
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                lines.append(line.rstrip("\n"))
                if self._heard is not None:
                    self._heard(lines[-1])
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        outcome = Outcome(
            status=self.process.returncode,
            output="\n".join(lines),
            seconds=time.monotonic() - self._began,
            cpu_seconds=used.ru_utime + used.ru_stime,
        )
        if self._times is not None:
            self._times.note(self.title, outcome)
        return outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._send(signal.SIGINT)  # After this signal, pytest ends the games that it started.
        self.outcome(limit_seconds=60)  # A shell may have started us with this signal ignored.

    def outcome(self, *, limit_seconds: float | None = None) -> Outcome:
        """Wait for the end of the command and return the outcome.

        After `limit_seconds` the command is killed.
        """
        with contextlib.suppress(TimeoutError):
            return self._outcome.result(limit_seconds)
        self._send(signal.SIGKILL)
        return self._outcome.result()

    def _send(self, number: signal.Signals) -> None:
        """Send a signal to the command and its children, unless it has ended."""
        if not self._outcome.done():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def wait(self) -> None:
        """Wait for the end of the command, and print its output under a line with the title.

        Raises:
            StepError: the command failed; its output was printed.
        """
        outcome = self.outcome()
        say(f"== {self.title}: {'failed after' if outcome.status else 'done in'} {outcome}")
        show(self.title, outcome, self._shown)


def attempt(
    title: str,
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    times: Times | None = None,
    limit_seconds: float = 5400,
) -> Outcome:
    """Run `command`, and print its title and its outcome in one line.

    Raises:
        StepError: the program does not exist.
    """
    on_terminal = sys.stdout.isatty()

    def show_percent(line: str) -> None:
        if on_terminal and (percent := _PERCENT.search(line)):
            print(f"\r== {title}: {percent[1]} ", end="", flush=True)

    with Running(
        title, command, cwd=cwd, environment=environment, times=times, heard=show_percent
    ) as running:
        print(f"== {title}", end="", flush=True)
        outcome = running.outcome(limit_seconds=limit_seconds)
    end = f"{'failed after' if outcome.status else 'done in'} {outcome}"
    say(f"\r== {title}: {end}" if on_terminal else f": {end}")
    return outcome


def run(
    title: str,
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    shown: Shown = everything,
    limit_seconds: float = 5400,
    times: Times | None = None,
) -> str:
    """Run `command` and print those lines that `shown` returns. Return all lines.

    Raises:
        StepError: the command failed or took too long; its whole output was printed.
    """
    outcome = attempt(
        title,
        command,
        cwd=cwd,
        environment=environment,
        times=times,
        limit_seconds=limit_seconds,
    )
    show(title, outcome, shown)
    return outcome.output


def show(title: str, outcome: Outcome, shown: Shown) -> None:
    """Print the lines of an outcome that `shown` returns.

    Raises:
        StepError: the command failed; its whole output was printed.
    """
    if outcome.status:
        say(outcome.output)
        raise StepError(f"{title}: failed with status {outcome.status}")
    for line in outcome.output.splitlines():
        if (text := shown(line)) is not None:
            say(f"   {text}".rstrip())
