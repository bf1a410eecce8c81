"""Locks: the versions of everything that development installs, a file of constraints a Python.

`make lock` writes the one of its Python anew, with the newest versions that `pyproject.toml` lets.
Standard library only: this runs before anything is installed.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from server.installation import Installation, installed
from server.pythons import version_of
from server.steps import StepError, say

FOLDER: Final = "requirements"
EXTRAS: Final = "test,check,embeddings"
"""What is locked: all that `make test` and `make check` install, but for what few machines have."""

_OURS: Final = "evennia-ai"
_HEAD: Final = "# Versions for development on Python {}, written by `make lock`; not by hand.\n"


def lock_of(root: Path, *, python: str) -> Path | None:
    """The file with the versions for this interpreter; None where there is none."""
    path = _path(root, version_of(python) or "none")
    return path if path.exists() else None


def for_development(root: Path) -> Installation:
    """This Python with all that tests and checks need, in the versions of its lock if it has one.

    Raises:
        StepError: the environment could not be made, or something could not be installed.
    """
    lock = lock_of(root, python=sys.executable)
    return installed(root, extras="test,check", lock=lock)


def write_lock(root: Path, *, python: str) -> None:
    """Write the versions that an installation from nothing would have today.

    Raises:
        StepError: pip finds no set of versions that fit together.
    """
    version = version_of(python) or ""
    path = _path(root, version)
    path.parent.mkdir(exist_ok=True)
    path.write_text(_HEAD.format(version) + _lines(_report(root, python)), encoding="utf-8")
    say(f"== {path.relative_to(root)} has the newest versions; `make test` installs them")


def _path(root: Path, version: str) -> Path:
    return root / FOLDER / f"python-{version}.txt"


def _report(root: Path, python: str) -> dict[str, Any]:
    """What pip says that it would install; nothing is installed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", str(report)]
        done = subprocess.run(
            [python, "-m", "pip", *words, f".[{EXTRAS}]"],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepError(f"pip found no versions that fit together:\n{done.stderr.strip()}")
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        return found


def _lines(report: dict[str, Any]) -> str:
    """A line `name==version` for each package but ours, sorted."""
    known = {one["metadata"]["name"]: one["metadata"]["version"] for one in report["install"]}
    names = sorted((name for name in known if name != _OURS), key=str.lower)
    return "".join(f"{name}=={known[name]}\n" for name in names)
