"""A plugin of pytest that runs a sample of test files, functions and cases.

pytest -p tests.sampling [--files 3] [--one-in 20] [--cases 1]

`make test` keeps all functions with two cases each. On another Python or Evennia, every third file
runs one function in twenty, with one case; on another database, all functions run with one case.
The first file of a folder is always read, so that the fixtures of every folder are tried. What
depends on the Python version (a regular expression, a coroutine) is in many tests, so a sample is
enough. Functions that are left out make no cases, which would take most of the time of collecting.
"""

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

FILES: Final = 1
ONE_IN: Final = 1
CASES: Final = 3
_SEEN: Final = pytest.StashKey[Counter[str]]()
"""How many files each folder has had so far, and how many functions each file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for the size of the sample."""
    group = parser.getgroup("sampling")
    group.addoption("--files", type=int, default=FILES, help="read one file in so many")
    group.addoption("--one-in", type=int, default=ONE_IN, help="keep one function in so many")
    group.addoption("--cases", type=int, default=CASES, help="keep so many cases of a function")


@pytest.hookimpl(trylast=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In each folder, leave out all test files except the first and every `--files`th after it."""
    if not (collection_path.name.startswith("test_") and collection_path.suffix == ".py"):
        return None
    place = _place(config, str(collection_path.parent))
    return True if place % config.getoption("files") else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: Any
) -> list[pytest.Item] | None:
    """In each file, leave out all functions except the first and every `--one-in`th after it."""
    if not collector.istestfunction(obj, name):
        return None
    place = _place(collector.config, collector.nodeid.partition("::")[0])
    return [] if place % collector.config.getoption("one_in") else None


def _place(config: pytest.Config, within: str) -> int:
    """Return how many files of a folder, or functions of a file, were seen before."""
    seen = config.stash.setdefault(_SEEN, Counter())
    seen[within] += 1
    return seen[within] - 1


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out cases beyond the limit. The first, the last and some between them stay."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.partition("[")[0]].append(item)
    most = config.getoption("cases")
    kept = {item for cases in functions.values() for item in _spread(cases, most)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _spread(cases: list[pytest.Item], most: int) -> list[pytest.Item]:
    if len(cases) <= most:
        return cases
    return [cases[place * (len(cases) - 1) // max(1, most - 1)] for place in range(most)]
