"""What a second run on another Python or database leaves out."""

from types import SimpleNamespace

from tests import sampling


def collected(*nodes: str, one_in: int = 1, cases: int = 1) -> tuple[list[str], list[str]]:
    """What is kept of these tests, and what is left out."""
    items = [SimpleNamespace(nodeid=node) for node in nodes]
    left_out = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    config = SimpleNamespace(hook=hook, getoption={"one_in": one_in, "cases": cases}.get)
    sampling.pytest_collection_modifyitems(config, items)
    return [item.nodeid for item in items], [item.nodeid for item in left_out]


def test_one_function_in_so_many_of_a_file_is_kept_from_the_first_on():
    kept, left_out = collected(*(f"a.py::test_{number}" for number in range(12)), one_in=5)

    assert kept == ["a.py::test_0", "a.py::test_5", "a.py::test_10"]
    assert len(left_out) == 9


def test_of_a_table_the_first_case_is_kept_and_it_counts_as_one_function():
    rows = [f"a.py::test_row[{number}]" for number in range(9)]

    kept, _ = collected(*rows, *(f"a.py::Test::test_{number}[x]" for number in range(5)), one_in=5)

    assert kept == ["a.py::test_row[0]", "a.py::Test::test_4[x]"]


def test_of_more_cases_the_first_the_last_and_what_lies_between_are_kept():
    rows = [f"a.py::test_row[{number}]" for number in range(9)]

    kept, _ = collected(*rows, "a.py::test_other[a]", "a.py::test_other[b]", cases=3)

    numbers = ["a.py::test_row[0]", "a.py::test_row[4]", "a.py::test_row[8]"]
    assert kept == [*numbers, "a.py::test_other[a]", "a.py::test_other[b]"]


def test_no_file_is_left_out():
    nodes = ["a.py::test_one", "b.py::test_one[x]", "b.py::test_two", "c.py::Test::test_one"]

    kept, _ = collected(*nodes, one_in=5)

    assert [node.split("::")[0] for node in kept] == ["a.py", "b.py", "c.py"]
