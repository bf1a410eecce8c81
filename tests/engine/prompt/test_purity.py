"""The pure packages import neither Django, Evennia nor Twisted."""

import json
import subprocess
import sys

import pytest

PACKAGES = (
    "evennia_ai.engine.prompt.report",
    "evennia_ai.engine.prompt.registry",
    "evennia_ai.engine.lorebook.activation.passes",
    "evennia_ai.formats.cards.card",
    "evennia_ai.engine.compose",
    "evennia_ai.engine.knowledge.assembly.assembly",
    "evennia_ai.formats.scenario",
    "evennia_ai.cli.composing",
)
FRAMEWORKS = ("django", "evennia", "twisted", "rest_framework")
PROGRAM = f"""
import importlib, json, sys
found = {{}}
for name in {PACKAGES}:
    importlib.import_module(name)
    found[name] = sorted(set({FRAMEWORKS}) & set(sys.modules))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def imported() -> dict[str, list[str]]:
    """Return the frameworks that are loaded after each pure package was imported, in order."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", PACKAGES)
def test_pure_package_imports_no_framework(imported: dict[str, list[str]], name: str) -> None:
    assert imported[name] == []
