"""Test the length of the longest chain of imports, in import-linter's own graph."""

from graphlib import TopologicalSorter

import grimp

MOST_MODULES = 32


def test_import_chain_is_short_enough_to_follow():
    graph = grimp.build_graph("evennia_ai")
    modules = sorted(name for name in graph.modules if ".migrations" not in name)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in modules}
    longest: dict[str, tuple[str, ...]] = {}
    for name in TopologicalSorter(imported).static_order():
        below = (longest[other] for other in imported.get(name, ()))
        longest[name] = (name, *max(below, key=len, default=()))
    chain = max(longest.values(), key=len)

    assert len(chain) > 1
    assert len(chain) <= MOST_MODULES, " -> ".join(chain)
