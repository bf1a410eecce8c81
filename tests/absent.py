"""Skip or fail tests whose program or package is missing, never silently."""

import os
from importlib.util import find_spec
from typing import NoReturn

import pytest

from server.preparing import NOTHING_SKIPPED


def absent(undone: str, *, why: str) -> NoReturn:
    """Skip the test with a reason, or fail it if nothing may be skipped."""
    if os.environ.get(NOTHING_SKIPPED):
        pytest.fail(f"{undone}: {why}")
    pytest.skip(f"{undone}: {why}")


def need(*packages: str, undone: str) -> None:
    """Return if all packages can be imported. Otherwise skip or fail the test."""
    if missing := [name for name in packages if find_spec(name) is None]:
        absent(undone, why=f"{', '.join(missing)} is not installed")
