"""Ceilings of the import graph: who adds to it takes something away.

The contracts in `pyproject.toml` check its direction; these figures may only go down.
"""

from functools import cache

import grimp
import pytest

MOST_IMPORTS = 38
"""Modules of ours that one file imports."""
MOST_OF_NINE_IN_TEN = 15
"""The same for nine files in ten."""
LONGEST_CHAIN = 32
"""Files that import one another in a row."""


@pytest.fixture(scope="module")
def imported() -> dict[str, frozenset[str]]:
    """The modules that each module imports."""
    graph = grimp.build_graph("evennia_ai", cache_dir=None)
    return {
        one: frozenset(graph.find_modules_directly_imported_by(one) - {"evennia_ai"})
        for one in graph.modules - {"evennia_ai"}
    }


def test_no_file_imports_more_of_our_modules_than_before(
    imported: dict[str, frozenset[str]],
) -> None:
    counts = sorted((len(found), name) for name, found in imported.items())
    assert counts[-1][0] <= MOST_IMPORTS, counts[-1]
    assert counts[len(counts) * 9 // 10][0] <= MOST_OF_NINE_IN_TEN


def test_longest_import_chain_did_not_grow(imported: dict[str, frozenset[str]]) -> None:
    @cache
    def chain(name: str) -> tuple[str, ...]:
        return (name, *max((chain(one) for one in imported[name]), key=len, default=()))

    longest = max((chain(name) for name in imported), key=len)
    assert len(longest) <= LONGEST_CHAIN, longest
