"""Programs that tests talk to, from Debian's packages: installed where that can be done.

Continuous integration starts on a machine that may have none of them. Who is not root, or has
another system, is told what is missing, and the tests that want it are skipped. Standard library
only: this runs before anything is installed.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

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
    {"postgresql": "knowledge bases in a game on PostgreSQL", **MEDIAWIKI}
)
"""Packages with what is tested with each."""

_ENVIRONMENT: Final = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
"""Nothing is asked, and no service is started: the tests start their own."""


def ensure(packages: Mapping[str, str], *, root: Path) -> tuple[str, ...]:
    """Install those that are missing, where it can be done; which of them are missing after it."""
    missing = _missing(packages)
    if missing and _can_install():
        say(f"== Installing Debian's packages {', '.join(missing)}")
        _install(missing, root)
        missing = _missing(packages)
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
