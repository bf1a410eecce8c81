"""The pure rooms start without Django, Evennia or Twisted."""

import subprocess
import sys

import pytest

ROOMS = (
    "evennia_ai.prompt.report",
    "evennia_ai.prompt.registry",
    "evennia_ai.lorebook.activation.activation",
    "evennia_ai.cards.reading",
    "evennia_ai.compose",
    "evennia_ai.knowledge.assembly.assembly",
    "evennia_ai.scenario",
    "evennia_ai.cli.composing",
)
FRAMEWORKS = ("django", "evennia", "twisted", "rest_framework")


@pytest.mark.parametrize("room", ROOMS)
def test_a_pure_room_imports_no_framework(room: str) -> None:
    program = f"import {room}, sys; print(*sorted(set({FRAMEWORKS}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
