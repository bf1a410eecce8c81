"""A library in a file of the test's own."""

import pytest

from tests.shared_library import a_library


@pytest.fixture
def library(tmp_path, db):
    with a_library(tmp_path / "library.db3") as path:
        yield path
