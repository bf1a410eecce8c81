"""Test limits of the import graph. They may only be lowered.

The contracts in `pyproject.toml` check the direction of imports.
"""

from functools import cache

import grimp
import pytest

MOST_IMPORTS = 38
"""The most modules of ours that one file may import."""
MOST_OF_NINE_IN_TEN = 16
"""The most modules of ours that nine of ten files may import."""
LONGEST_CHAIN = 35
"""The most files that may import one another in a row."""


@pytest.fixture(scope="module")
def imported() -> dict[str, frozenset[str]]:
    """Return the modules that each module imports."""
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
