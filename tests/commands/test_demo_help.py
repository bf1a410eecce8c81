"""The demo's help names only commands and switches that exist."""

import re
from typing import Any

import pytest

from world.help_entries import HELP_ENTRY_DICTS

NAMED = re.compile(r"\|w(\w+)(?:/([\w/]+))?[^|]*\|n")
EVENNIAS = {"give", "help", "look", "say", "set", "whisper"}
EXITS = {"aboard"}


@pytest.fixture
def verbs(stage: Any) -> dict[str, set[str]]:
    """Return our commands with their switches."""
    from commands.evening import CmdEvening
    from evennia_ai.commands.cmdset import AICmdSet

    ours = {one.key.strip(): set(getattr(one, "verbs", ())) for one in AICmdSet().commands}
    return ours | {CmdEvening.key: set(CmdEvening.switch_options)}


@pytest.mark.parametrize("entry", HELP_ENTRY_DICTS, ids=lambda entry: entry["key"])
def test_demo_help_names_existing_commands(
    entry: dict[str, Any], verbs: dict[str, set[str]]
) -> None:
    named = NAMED.findall(entry["text"])
    unknown = [
        f"{command}/{switch}"
        for command, switch in named
        if command not in EVENNIAS | EXITS and switch not in {"", *verbs.get(command, ())}
    ]
    missing = {command for command, _ in named} - EVENNIAS - EXITS - set(verbs)
    assert named
    assert (unknown, missing) == ([], set())
