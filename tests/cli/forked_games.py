"""Calls of `evennia-ai` in processes that are forked from one that has started Django.

Starting Django with Evennia's apps takes longer than the calls themselves. So one program starts
Django in the game's folder, before it opens the database, and forks for each call. Without a game
it only imports what calls to a model server need. The program reads one call per line as JSON and
writes one exit status per line.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tests.cli.conftest import Called
from tests.forked import become

HAS_GAME = "DJANGO_SETTINGS_MODULE" in os.environ
"""True in a program that has the settings of a game."""


class ForkedGame:
    """The forking program of one folder, with or without a game, until it is closed."""

    def __init__(self, folder: Path, *, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._program = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str, cwd: Path, module: str = "evennia_ai.cli") -> Called:
        """Return the output of `evennia-ai WORDS`, or of another module, in the folder `cwd`."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        outputs = {name: self._folder / f"called.{name}" for name in ("out", "err")}
        asked = {"words": words, "cwd": str(cwd), "module": module}
        asked |= {name: str(path) for name, path in outputs.items()}
        self._program.stdin.write(json.dumps(asked) + "\n")
        self._program.stdin.flush()
        status = int(self._program.stdout.readline())
        said = {name: path.read_text(encoding="utf-8") for name, path in outputs.items()}
        return Called(status=status, **said)

    def close(self) -> None:
        """End the program."""
        self._program.communicate()


def main() -> None:
    """Import what every call would import, start Django for a game, and fork for each call."""
    if HAS_GAME:
        import django

        with contextlib.redirect_stdout(sys.stderr):
            django.setup()
        # None of these modules opens the database when it is imported.
        from evennia_ai.cli.game import history  # noqa: F401
        from evennia_ai.cli.game.move import moving  # noqa: F401
    else:
        from evennia_ai.services.llm import doctor  # noqa: F401
        from evennia_ai.services.llm.clients import anthropic, openai  # noqa: F401
        from evennia_ai.services.settings import conf  # noqa: F401

    for line in sys.stdin:
        child = os.fork()
        if not child:
            _call(**json.loads(line))
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


def _forget_databases() -> None:
    """Forget the databases that were read at start, because a move names its own."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        assert connection.connection is None, "a fork must not share a connection"
        del connections[connection.alias]
    del connections.settings
    # Django caches what it has read from the setting here.
    connections._settings = None


def _call(*, words: Sequence[str], cwd: str, module: str, out: str, err: str) -> NoReturn:
    """Run `evennia-ai WORDS`, or another module, in the forked process."""

    def work() -> int:
        os.chdir(cwd)
        if HAS_GAME:
            _forget_databases()
        return int(importlib.import_module(module).run(words))

    become(work, out=out, err=err)


if __name__ == "__main__":
    main()
