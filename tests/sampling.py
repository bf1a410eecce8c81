"""A plugin that takes samples: of each test file some functions, of each function some cases.

    pytest -p tests.sampling [--one-in 10] [--cases 1]

For a second run of what ran whole: on another Python or Evennia (there one function in ten, with
one case) and on another database (all functions, with three cases). Every file is imported and
every fixture of a room is made there. What else depends on who interprets it (a regular expression,
a coroutine) stands in many tests, and what a later case asks more is asked of our code.
"""

from collections import defaultdict
from itertools import islice
from typing import Final

import pytest

ONE_IN: Final = 1
CASES: Final = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    """How large the samples are."""
    group = parser.getgroup("sampling")
    group.addoption("--one-in", type=int, default=ONE_IN, help="keep one function in so many")
    group.addoption("--cases", type=int, default=CASES, help="keep so many cases of a function")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the sample."""
    kept = sample(
        [item.nodeid for item in items],
        one_in=config.getoption("one_in"),
        cases=config.getoption("cases"),
    )
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in kept])
    items[:] = [item for item in items if item.nodeid in kept]


def sample(nodes: list[str], *, one_in: int, cases: int) -> set[str]:
    """Those that are kept, of node ids in the order of their files.

    Of a file the first function and every `one_in`th after it; of a function the first case, and
    where there are to be more the last, and what lies evenly between.
    """
    files: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for node in nodes:
        file, _, _ = node.partition("::")
        function, _, _ = node.partition("[")
        files[file].setdefault(function, []).append(node)
    functions = (one for found in files.values() for one in islice(found.values(), 0, None, one_in))
    return {node for function in functions for node in _spread(function, cases)}


def _spread(nodes: list[str], most: int) -> list[str]:
    if len(nodes) <= most:
        return nodes
    return [nodes[place * (len(nodes) - 1) // max(1, most - 1)] for place in range(most)]
