"""A plugin that takes samples: of each test file some functions, of each function some cases.

    pytest -p tests.sampling [--one-in 20] [--cases 1]

For a second run of what ran whole: on another Python or Evennia (there one function in twenty, with
one case) and on another database (all functions, with three cases). Every file is imported and
every fixture of a room is made there. What else depends on who interprets it (a regular expression,
a coroutine) stands in many tests, and what a later case asks more is asked of our code.

A function that is left out makes no cases, which are most of what collecting all of them takes.
"""

from collections import Counter, defaultdict
from typing import Any, Final

import pytest

ONE_IN: Final = 1
CASES: Final = 3
_SEEN: Final = pytest.StashKey[Counter[str]]()
"""How many functions each file had so far."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How large the samples are."""
    group = parser.getgroup("sampling")
    group.addoption("--one-in", type=int, default=ONE_IN, help="keep one function in so many")
    group.addoption("--cases", type=int, default=CASES, help="keep so many cases of a function")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class, name: str, obj: Any
) -> list[pytest.Item] | None:
    """Of a file, leave out all functions but the first and every `--one-in`th after it."""
    if not collector.istestfunction(obj, name):
        return None
    seen = collector.config.stash.setdefault(_SEEN, Counter())
    file = collector.nodeid.partition("::")[0]
    place, seen[file] = seen[file], seen[file] + 1
    return [] if place % collector.config.getoption("one_in") else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what cases are too many: the first stays, the last, and some between them."""
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
