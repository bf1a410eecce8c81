"""The supported Pythons, and which of them are on this machine.

Standard library only: this runs before anything is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
