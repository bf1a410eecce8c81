"""Test which tests a sampled run leaves out."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = {
    "test_a.py": """
import pytest

@pytest.mark.parametrize("number", range(9))
def test_row(number): pass

def test_one(): pass
def helper(): pass
def test_two(): pass

class TestMore:
    def test_three(self): pass
    @pytest.mark.parametrize("name", "xy")
    def test_four(self, name): pass
""",
    "test_b.py": "def test_one(): pass",
}


@pytest.fixture
def kept(tmp_path):
    """A function that returns which of these tests a run with some options keeps."""
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")

    def ask(*options: str) -> list[str]:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "--collect-only", "-q", f"--rootdir={tmp_path}"),
                *("-p", "no:cacheprovider", "-p", "tests.sampling", *options, str(tmp_path)),
            ],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        return [line for line in done.stdout.splitlines() if "::" in line]

    return ask


def test_sample_of_a_folder_has_the_first_file_and_every_nth(kept):
    assert kept("--files", "2", "--one-in", "4", "--cases", "1") == [
        "test_a.py::test_row[0]",
        "test_a.py::TestMore::test_four[x]",
    ]


@pytest.mark.long
def test_sample_of_a_file_has_the_first_test_and_every_nth_with_one_case(kept):
    assert kept("--one-in", "4", "--cases", "1") == [
        "test_a.py::test_row[0]",
        "test_a.py::TestMore::test_four[x]",
        "test_b.py::test_one",
    ]


@pytest.mark.long
def test_sample_of_cases_has_the_first_the_last_and_some_between(kept):
    assert kept() == [
        *(f"test_a.py::test_row[{number}]" for number in (0, 4, 8)),
        *("test_a.py::test_one", "test_a.py::test_two", "test_a.py::TestMore::test_three"),
        *("test_a.py::TestMore::test_four[x]", "test_a.py::TestMore::test_four[y]"),
        "test_b.py::test_one",
    ]
