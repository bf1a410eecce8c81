"""Test that the page of the public API lists exactly the names that a game may import."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import evennia_ai

PAGE = Path(__file__).parents[1] / "docs" / "extend" / "api.md"


def test_page_has_every_public_name_once() -> None:
    shown = re.findall(r":: evennia_ai\.(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(shown) == sorted(evennia_ai.PUBLIC)


@pytest.mark.parametrize("name", evennia_ai.PUBLIC)
def test_public_name_is_found_in_its_module(name: str) -> None:
    module = import_module(evennia_ai.PUBLIC[name])
    assert getattr(evennia_ai, name) is vars(module)[name]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="'evennia_ai' has no attribute 'AINpc'"):
        _ = evennia_ai.AINpc


def test_importing_the_package_imports_no_framework() -> None:
    code = "import evennia_ai, sys; print({'django', 'evennia', 'pydantic'} & {*sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert done.stdout == "set()\n"
