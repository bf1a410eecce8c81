"""Make the virtual environments of this checkout, and the lock file with their versions.

`venv` makes an environment and uv installs packages into it. `pyproject.toml` says which packages
are needed, and the lock file which versions. Standard library only, because this runs before
anything is installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from server.steps import StepError, attempt, nothing, run, say

SUPPORTED: Final = ("3.11", "3.12", "3.13")
DEVELOPMENT: Final = "game,test,check,docs"
"""The extras that `make test`, `make check` and `make docs` need."""
LOCKED: Final = f"{DEVELOPMENT},embeddings"
"""The extras whose versions are in the lock file. The others have no wheels for some machines."""
LOCK: Final = Path("requirements", "development.txt")
"""The lock file. It is one for all versions of Python: lines for some of them have a marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """A Python in which this checkout is installed, and the folder of its programs."""

    root: Path
    programs: Path

    @property
    def python(self) -> Path:
        return self.programs / "python"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return this process's environment, with the installation's programs first on the path.

        Evennia looks for `twistd` on the path, so calling its launcher by its full name is not
        enough. Python may write compiled modules even if the shell forbids it, because each step
        has many processes, and Evennia's modules take longer to compile than to run.
        """
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", "")])
        ours = {"PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": ""}
        return {**os.environ, **(more or {}), **ours}

    def install(self, title: str, *words: str) -> None:
        """Install what the words `wanted` of `pip install` name, with uv or else with pip.

        uv takes a tenth of pip's time. It does not read pip's configuration (`pip.conf`,
        `PIP_INDEX_URL`, `PIP_FIND_LINKS`), so it finds nothing on a machine that names its package
        index only there. pip takes the same constraints and makes the same environment.

        Raises:
            StepError: pip could not install it either.
        """
        environment = self.environment({"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
        python = str(self.python)
        uv = [str(self.programs / "uv"), "pip", "install", "--quiet", "--python", python]
        try:
            outcome = attempt(title, [*uv, *words], cwd=self.root, environment=environment)
        except StepError as error:
            reason = str(error)
        else:
            if not outcome.status:
                return
            lines = outcome.output.splitlines()
            causes = [line.strip() for line in lines if "cause: " in line]
            # The problem that caused all others.
            reason = [f"status {outcome.status}", *lines[:1], *causes][-1]
        say(f"   uv could not, so pip does it, which takes longer ({reason})")
        pip = [python, "-m", "pip", "install", "--no-compile"]
        run(title, [*pip, *words], cwd=self.root, environment=environment, shown=nothing)


def installed(
    root: Path,
    *,
    folder: str = ".venv",
    python: str = sys.executable,
    extras: str = DEVELOPMENT,
    lock: Path | None = LOCK,
) -> Installation:
    """Return the installation in `folder` with these extras, after making or updating it.

    Without a lock file, the newest versions are installed.

    Raises:
        StepError: the environment could not be made, or something could not be installed.
    """
    installation = environment_of(root, folder=folder, python=python)
    # This package is built by pip, because uv would build it again each time and ask the package
    # index.
    stamp = root / folder / f"installed-{extras}"
    sources = (root / "pyproject.toml", root / LOCK)
    if stamp.exists() and stamp.stat().st_mtime >= max(one.stat().st_mtime for one in sources):
        say(f"== {folder} is up to date")
        return installation
    constraints = ("-c", str(lock)) if lock else ()
    title = f"Installing evennia_ai into {folder}"
    installation.install(title, "-e", f".[{extras}]", *constraints)
    stamp.touch()
    return installation


def environment_of(root: Path, *, folder: str = ".venv", python: str) -> Installation:
    """Return the environment in `folder`.

    It is made first if it does not have this version of Python.

    Raises:
        StepError: the environment could not be made.
    """
    target = root / folder
    installation = Installation(root=root, programs=target / "bin")
    if version_of(str(installation.python)) != version_of(python):
        target.parent.mkdir(exist_ok=True)
        command = [python, "-m", "venv", "--clear", str(target)]
        try:
            run(f"Making {folder}", command, cwd=root, environment=os.environ, shown=nothing)
        except StepError as error:
            raise StepError(
                f"{error}. On Debian and Ubuntu the module is a package of its own: "
                "apt-get install python3-venv"
            ) from error
    if not (installation.programs / "uv").exists():
        pip = [str(installation.python), "-m", "pip", "install", "--quiet"]
        attempt("Installing uv", [*pip, "uv", "-c", str(LOCK)], cwd=root, environment=os.environ)
    return installation


def write_lock(root: Path) -> None:
    """Write a lock file with the newest versions that `pyproject.toml` allows on all Pythons.

    Raises:
        StepError: uv found no versions that are compatible, or no package index.
    """
    uv = str(environment_of(root, python=sys.executable).programs / "uv")
    options = ["--universal", "--upgrade", "--quiet", "--no-annotate"]
    command = [
        *(uv, "pip", "compile", *options, "--python-version", SUPPORTED[0]),
        *(f"--extra={name}" for name in LOCKED.split(",")),
        *("--custom-compile-command", "make lock"),
        *("pyproject.toml", "--output-file", str(LOCK)),
    ]
    title = "Looking for the newest versions"
    try:
        run(title, command, cwd=root, environment=os.environ, shown=nothing)
    except StepError as error:
        raise StepError(
            f"{error}. If a package index is only in pip's configuration, "
            "name it in UV_DEFAULT_INDEX"
        ) from error
    say(f"{LOCK} has the newest versions; `make test` installs them")


def this_version() -> str:
    """Return the version of this Python, such as `3.11`."""
    return "{}.{}".format(*sys.version_info)


def version_of(program: str) -> str | None:
    """Return the version of another Python, such as `3.12`.

    Return None if the program does not run.
    """
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([program, "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPython:
    """Another Python on this machine."""

    version: str
    program: str

    def installation(self, root: Path) -> Installation:
        """Return the folder in which `make check` installs this checkout for the other Python."""
        return Installation(root=root, programs=root / self.folder / "bin")

    @property
    def folder(self) -> str:
        return f".venvs/{self.version}"


def other_python() -> OtherPython | None:
    """Return the supported Python whose version is farthest from this one, or None.

    `uv python find` fails at the first of pyenv's programs that leads to no Python, so the
    installations of pyenv are tried here.
    """
    newest_first = SUPPORTED[::-1]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    for version in SUPPORTED if this_version() == newest_first[0] else newest_first:
        name = f"python{version}"
        found = (shutil.which(name), *sorted(map(str, pyenv.glob(f"{version}.*/bin/{name}"))))
        for program in found if version != this_version() else ():
            if program and version_of(program) == version:
                return OtherPython(version=version, program=program)
    return None
