"""Test that the examples in the help of commands work in the demo village, in their order."""

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from evennia.accounts.models import AccountDB
from evennia.utils.create import create_object

from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.npc.writings import Writing
from tests.npc.lorekeeper.wikis import Writer
from world.help_entries import HELP_ENTRY_DICTS

EXAMPLES = re.compile(r"^ *Examples:\n(.*?)(?=^\s*$)", re.DOTALL | re.MULTILINE)
COMMANDS = {
    str(command.key): str(command.__doc__)
    for command in sorted(AICmdSet().commands, key=lambda command: str(command.key))
}
CONFIRMED = re.compile(
    r"^(?:ai/forget (?:= anna|here)|ai me/forget oren|component/revert mood = 1)$", re.MULTILINE
)
"""Examples that ask for a confirmation, which the test gives."""
TYPED = re.compile(r"^ {4}\|w(.+?)\|n", re.MULTILINE)
DEMO = {str(entry["key"]): str(entry["text"]) for entry in HELP_ENTRY_DICTS}


def _two_turns_and_an_admin(village: Any) -> None:
    village.types("say Oren, why did the night ferry stop running?\nsay Oren, are you sure?")
    village.builder.permissions.add("Admin")  # The text that ai/forget asks for, as its help says.


def _a_model(village: Any) -> None:
    village.install(model=Writer("=== PAGE: The Leek Show ===\nOnce a year, on the quay."))


def _things_to_show(village: Any) -> None:
    for thing in ("map", "old coin"):
        create_object(key=thing, location=village.builder)


def _things_to_read(village: Any) -> None:
    create_object(Writing, key='letter "Low water at dawn"', location=village.builder)
    create_object(key="sign", location=village.builder)


def _a_turn(village: Any) -> None:
    village.types("say Oren, when does the ferry leave?")


def _a_memory(village: Any) -> None:
    village.types(f"ai/memory oren = about {village.builder.key}: The builder owes Oren a rope.")


def _a_player(village: Any) -> None:
    village.builder.account = AccountDB.objects.get_account_from_name("builder")


SET_UP: Mapping[str, Callable[[Any], None]] = {
    "ai": _two_turns_and_an_admin,
    "ai off": _a_player,
    "ai language": _a_player,
    "ai me": _a_memory,
    "ai report": _a_turn,
    "ignore": _a_player,
    "lorekeeper": _a_model,
    "prompts": _a_turn,
    "read": _things_to_read,
    "show": _things_to_show,
    "wiki": _a_model,
}
"""What the examples of a help page need in addition to the demo village."""


@pytest.mark.long
@pytest.mark.parametrize("key", COMMANDS)
def test_examples_in_the_help_of_a_command_work(key: str, village: Any) -> None:
    found = EXAMPLES.findall(COMMANDS[key])
    assert found
    SET_UP.get(key, id)(village)
    for examples in found:
        village.types(CONFIRMED.sub(r"\g<0>\nyes", textwrap.dedent(examples)))


@pytest.mark.parametrize("key", DEMO)
def test_commands_in_the_demos_own_help_work(key: str, village: Any) -> None:
    SET_UP.get(key, id)(village)
    village.types("\n".join(TYPED.findall(DEMO[key])))
