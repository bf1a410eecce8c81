"""`evennia-ai` in a process of its own, as users start it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Called
from tests.unchecked import UNCHECKED

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300


def environment(**more: str) -> dict[str, str]:
    """Return an environment with the installed packages and without settings of this process."""
    kept = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(UNCHECKED), str(ROOT)]), **more}


def evennia_ai(*words: str, **more: str) -> Called:
    """Return the output of `evennia-ai WORDS`, with `more` added to its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "evennia_ai.cli", *words],
        cwd=ROOT,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    return Called(status=done.returncode, out=done.stdout, err=done.stderr)
