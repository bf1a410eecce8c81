"""The virtual environments of this checkout, made once and remade when what they hold changes.

`pyproject.toml` says what is wanted, a lock (`server.locking`) which versions of it.

Standard library only: this runs before anything is installed.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from server.steps import StepError, nothing, run, say


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A Python with this checkout installed in it, and the folder of its programs."""

    root: Path
    programs: Path

    @property
    def python(self) -> Path:
        return self.programs / "python"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """This process's environment, with the installation's programs found first.

        Evennia looks for `twistd` on the path, so calling its launcher by its full name is not
        enough. What was compiled is kept, also where the shell asks for the contrary: each step is
        many processes, and Evennia's modules take longer to compile than to run.
        """
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", "")])
        ours = {"PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}
        return {**os.environ, **(more or {}), **ours}


def installed(
    root: Path,
    *,
    folder: str = ".venv",
    python: str = sys.executable,
    extras: str = "",
    lock: Path | None = None,
) -> Installation:
    """The installation in `folder`, made or brought up to date first, with `name[extras]`.

    It has the versions of `lock`, or without one the newest.

    Raises:
        StepError: the environment could not be made, or something could not be installed.
    """
    target = root / folder
    installation = Installation(root=root, programs=target / "bin")
    stamp = target / "evennia_ai-installed.json"
    wanted = _fingerprint(root, python=python, lock=lock)
    if _is_current(stamp, fingerprint=wanted, extras=extras) and installation.python.exists():
        say(f"== {folder} is up to date")
        return installation
    if not installation.python.exists():
        _make(target, python=python)
    what = [f".[{extras}]" if extras else ".", *(["-c", str(lock)] if lock else [])]
    run(
        f"Installing evennia_ai into {folder} (half a minute on a fast line)",
        [installation.python, "-m", "pip", "install", "--no-compile", "-e", *what],
        cwd=root,
        environment=installation.environment({"PIP_DISABLE_PIP_VERSION_CHECK": "1"}),
        shown=nothing,
    )
    stamp.write_text(json.dumps({"fingerprint": wanted, "extras": extras}), encoding="utf-8")
    return installation


def _make(target: Path, *, python: str) -> None:
    target.parent.mkdir(exist_ok=True)
    try:
        run(
            f"Making {target.name} with {python}",
            [python, "-m", "venv", target],
            cwd=target.parent,
            environment=os.environ,
            shown=nothing,
        )
    except StepError as error:
        raise StepError(
            f"{error}. On Debian and Ubuntu the module is a package of its own: "
            "apt-get install python3-venv"
        ) from error


def _fingerprint(root: Path, *, python: str, lock: Path | None) -> str:
    project = (root / "pyproject.toml").read_bytes() + (lock.read_bytes() if lock else b"")
    version = subprocess.run(
        [python, "--version"], capture_output=True, text=True, check=True
    ).stdout
    return hashlib.sha256(project + version.encode()).hexdigest()


def _is_current(stamp: Path, *, fingerprint: str, extras: str) -> bool:
    if not stamp.exists():
        return False
    known = json.loads(stamp.read_text(encoding="utf-8"))
    has_extras = set(extras.split(",")) <= {"", *known["extras"].split(",")}
    return known["fingerprint"] == fingerprint and has_extras
