"""What a second run on another Python leaves out of the tables."""

from types import SimpleNamespace

from tests import sampling


def collected(*nodes: str) -> tuple[list[str], list[str]]:
    """What is kept of these tests, and what is left out."""
    items = [SimpleNamespace(nodeid=node) for node in nodes]
    left_out = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    sampling.pytest_collection_modifyitems(SimpleNamespace(hook=hook), items)
    return [item.nodeid for item in items], [item.nodeid for item in left_out]


def test_of_a_table_the_first_the_last_and_the_middle_are_kept():
    kept, left_out = collected(*(f"a.py::test_row[{number}]" for number in range(9)))

    assert kept == ["a.py::test_row[0]", "a.py::test_row[4]", "a.py::test_row[8]"]
    assert len(left_out) == 6


def test_no_test_function_is_left_out():
    nodes = ["a.py::test_one", "a.py::test_two[x]", "a.py::test_two[y]", "b.py::test_one"]

    assert collected(*nodes) == (nodes, [])
