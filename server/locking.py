"""The supported Pythons, and the locks: a file of constraints for each, of all that is installed.

`make lock` writes the one of its Python anew, with the newest versions that `pyproject.toml` lets.
Standard library only: this runs before anything is installed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from server.installation import Installation, installed
from server.steps import StepError, say

SUPPORTED: Final = ("3.11", "3.12", "3.13")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPython:
    """A Python beside the one that runs this."""

    version: str
    program: str


def this_version() -> str:
    """`3.11` for a Python 3.11."""
    return "{}.{}".format(*sys.version_info)


def other_python() -> OtherPython | None:
    """The supported Python farthest from this one; None where there is no other."""
    newest_first = SUPPORTED[::-1]
    for version in SUPPORTED if this_version() == newest_first[0] else newest_first:
        for program in _candidates(version) if version != this_version() else ():
            if version_of(program) == version:
                return OtherPython(version=version, program=program)
    return None


def version_of(program: str) -> str | None:
    """`3.12` for a Python 3.12; None for a program that does not run."""
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _candidates(version: str) -> Iterator[str]:
    if found := shutil.which(f"python{version}"):
        yield found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(map(str, versions.glob(f"{version}.*/bin/python{version}")), reverse=True)


FOLDER: Final = "requirements"
DEVELOPMENT: Final = "game,test,check,docs"
"""What `make test`, `make check` and `make docs` install."""
EXTRAS: Final = f"{DEVELOPMENT},embeddings"
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
    return installed(root, extras=DEVELOPMENT, lock=lock)


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
