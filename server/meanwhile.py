"""A command that runs in a process of its own while other steps go on; its output comes at the end.

Standard library only: this runs before anything is installed.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from server.steps import Clock, Shown, StepError, nothing, say

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
        self._clock = Clock()
        self._took = ""
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
        status = self.process.returncode
        how = "failed after" if status else "done in"
        say(f"== {self.title}: {how} {self._took}, beside the steps above")
        output = self._log.read_text(encoding="utf-8", errors="replace")
        if status:
            say(output)
            raise StepError(f"{self.title}: failed with status {status}")
        for text in filter(None, map(self._shown, output.splitlines())):
            say(f"   {text}")
