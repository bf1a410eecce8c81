"""A command that runs in a process of its own while other steps go on; its output comes at the end.

Standard library only: this runs before anything is installed.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from server.steps import Shown, StepError, nothing, say

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
    ) -> None:
        self.title = title
        self._shown = shown
        self._log = root / LOGS / f"{title.lower().replace(' ', '-')}.log"
        self._log.parent.mkdir(exist_ok=True)
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()

    def wait(self) -> None:
        """Wait until it is done, and show what it said.

        Raises:
            StepError: it failed; everything it said has been printed.
        """
        status = self.process.wait()
        say(f"== {self.title}: {'failed' if status else 'done'}, beside the steps above")
        output = self._log.read_text(encoding="utf-8", errors="replace")
        if status:
            say(output)
            raise StepError(f"{self.title}: failed with status {status}")
        for text in filter(None, map(self._shown, output.splitlines())):
            say(f"   {text}")
