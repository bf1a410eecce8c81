"""Running commands so that somebody at a terminal sees how far they are.

Standard library only: this runs before anything is installed.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


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
    shown: Callable[[str], str | None] = everything,
    limit_seconds: float = 1800,
) -> str:
    """Run `command` under a title, showing what `shown` makes of its lines; returns all of them.

    Raises:
        StepError: the command failed or took too long; everything it said has been printed.
    """
    say(f"== {title}")
    began = time.monotonic()
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
        lines = [_show(line.rstrip("\n"), shown) for line in process.stdout]
        limit.cancel()
    output = "\n".join(lines)
    if process.returncode:
        if shown is not everything:
            say(output)
        raise StepError(f"{title}: failed with status {process.returncode}")
    say(f"   done in {time.monotonic() - began:.0f} s")
    return output


def _show(line: str, shown: Callable[[str], str | None]) -> str:
    if (text := shown(line)) is not None:
        say(f"   {text}".rstrip())
    return line
