"""What becomes of a test whose program or package is not on this machine: told, never silent."""

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest

from server.preparing import NOTHING_SKIPPED


def absent(undone: str, *, why: str) -> NoReturn:
    """Skip the test, saying what it leaves undone and why; fail it where nothing may be skipped."""
    if os.environ.get(NOTHING_SKIPPED):
        pytest.fail(f"{undone}: {why}")
    pytest.skip(f"{undone}: {why}")


def need(*packages: str, undone: str) -> None:
    """Return where all of the packages can be imported, else the test ends here."""
    if missing := [name for name in packages if find_spec(name) is None]:
        absent(undone, why=f"{', '.join(missing)} is not installed")
