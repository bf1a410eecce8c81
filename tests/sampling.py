"""A plugin that takes samples: of each test file every fifth test, with one case.

    pytest -p tests.sampling

For a second run on another Python or Evennia. Every file is imported and every fixture of a room is
made there, and what else depends on who interprets it (a regular expression, a query, a coroutine)
stands in many tests; what the neighbours of a test ask more is asked of our code.
"""

from collections import defaultdict
from itertools import islice
from typing import Final

import pytest

EVERY: Final = 5
"""Of so many test functions of a file one is kept: the first, and so on."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all but the first case of every fifth test function of a file."""
    kept = sample([item.nodeid for item in items])
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def sample(nodes: list[str]) -> set[str]:
    """Those that are kept, of node ids in the order of their files."""
    first_cases: dict[str, dict[str, str]] = defaultdict(dict)
    for node in nodes:
        file, _, _ = node.partition("::")
        function, _, _ = node.partition("[")
        first_cases[file].setdefault(function, node)
    return {
        node for cases in first_cases.values() for node in islice(cases.values(), 0, None, EVERY)
    }
