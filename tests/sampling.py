"""A plugin that takes samples: of each test a few of its cases.

    pytest -p tests.sampling

For a second run on another Python or Evennia: every test function runs there, and what a table's
hundredth row asks beyond its first does not depend on who interprets it.
"""

from collections import defaultdict
from typing import Final

import pytest

CASES: Final = 3
"""Cases of a test: the first, the last and one between them."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all but some cases of each test function."""
    functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        functions[item.nodeid.split("[")[0]].append(item)
    kept = {item.nodeid for cases in functions.values() for item in sample(cases)}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def sample(cases: list[pytest.Item]) -> list[pytest.Item]:
    """The first, the last and what lies evenly between, in their order."""
    if len(cases) <= CASES:
        return cases
    return [cases[place * (len(cases) - 1) // (CASES - 1)] for place in range(CASES)]
