"""What all commands have in common: their help, who may use them, and their command set."""

import re
from inspect import cleandoc

import pytest
from evennia.commands.default.cmdset_account import AccountCmdSet
from evennia.commands.default.cmdset_character import CharacterCmdSet
from evennia.commands.default.help import CmdHelp
from evennia.help.utils import parse_entry_for_subcategories

from evennia_ai.commands.ai.command import CmdAI
from evennia_ai.commands.cmdset import AICmdSet
from evennia_ai.commands.play import CmdRead, CmdShow, CmdTalk
from evennia_ai.commands.setup.card.command import CmdCard
from evennia_ai.commands.setup.component import CmdComponent
from evennia_ai.commands.setup.knowledge.command import CmdKnowledge
from evennia_ai.commands.setup.lore.command import CmdLore
from evennia_ai.commands.setup.note import CmdNote
from evennia_ai.commands.setup.preset.command import CmdPreset
from tests.commands.stage import on_screen

FOR_BUILDERS = (CmdComponent, CmdCard, CmdKnowledge, CmdNote, CmdPreset, CmdAI)
FOR_ALL = (CmdTalk, CmdShow, CmdRead)
ALL = (*FOR_BUILDERS, *FOR_ALL)
MOST_LINES = {CmdAI: 40, CmdCard: 45, CmdComponent: 45, CmdLore: 50, CmdKnowledge: 45}


@pytest.mark.parametrize("command", ALL)
def test_the_help_text_has_usage_and_examples(command):
    text = command.__doc__
    assert "Usage:\n" in text
    examples = text.split("Examples:\n")[1].split("\n\n")[0]
    assert [line for line in examples.splitlines() if line.strip().startswith(command.key)]


def test_braces_in_the_help_text_are_shown_as_they_are():
    assert "{{char}}" in CmdComponent.__doc__
    assert "{{char}}" in on_screen(CmdComponent().get_help(None, None))


def test_misspelt_switch_gets_a_suggestion(stage):
    told = stage.builds("ai/memry oren").strip()
    assert told == ("There is no ai/memry. Nothing was changed. Type this instead: ai/memory oren")


@pytest.mark.parametrize("command", ALL)
def test_every_switch_is_in_the_help_text(command):
    for verb in command.verbs:
        if verb:
            assert re.search(rf"^ +{verb} ", command.__doc__, re.MULTILINE)


@pytest.mark.parametrize("command", ALL)
def test_the_help_text_fits_a_screen_of_78_columns(command):
    assert max(len(line) - 4 for line in command.__doc__.splitlines()) <= 78


@pytest.mark.parametrize("command", [CmdAI, CmdCard, CmdComponent, CmdLore, CmdKnowledge])
def test_core_of_the_help_fits_one_screen_and_the_rest_is_in_topics(stage, command, monkeypatch):
    monkeypatch.setattr(CmdHelp, "help_more", False)  # Nobody is connected, so no pager may open.
    stage.builder.cmdset.add(CharacterCmdSet, persistent=False)
    stage.builder.cmdset.add(AICmdSet)
    topics = parse_entry_for_subcategories(cleandoc(command.__doc__))
    core = topics.pop(None)
    assert len(core.splitlines()) <= MOST_LINES[command]
    assert "# subtopics" not in stage.builds(f"help {command.key}")
    for topic, parts in topics.items():
        told = stage.builds(f"help {command.key}/{topic}")
        assert parts[None].strip().splitlines()[0].strip() in told
        assert f"{command.key}/{topic}" in stage.builds(f"help {command.key}")


@pytest.mark.parametrize("command", FOR_BUILDERS)
def test_builder_command_is_refused_to_players(stage, command):
    assert command.help_category == "building"
    assert command().access(stage.builder, "cmd")
    assert not command().access(stage.player, "cmd")


@pytest.mark.parametrize("command", FOR_ALL)
def test_player_command_is_allowed_to_everybody(stage, command):
    assert command().access(stage.player, "cmd")


def test_the_help_command_shows_the_examples_to_a_builder(stage, monkeypatch):
    monkeypatch.setattr(CmdHelp, "help_more", False)  # Nobody is connected, so no pager may open.
    stage.builder.cmdset.add(CharacterCmdSet, persistent=False)
    stage.builder.cmdset.add(AICmdSet)
    assert "component/depth mood = 2" in stage.builds("help component")


def names_in(cmdset):
    return {name for command in cmdset.commands for name in (command.key, *command.aliases)}


@pytest.mark.parametrize("taken_by", [CharacterCmdSet, AccountCmdSet])
def test_no_command_of_evennia_is_replaced(taken_by):
    there = taken_by()
    there.at_cmdset_creation()
    ours = AICmdSet()
    ours.at_cmdset_creation()
    taken = {name for command in there.commands for name in (command.key, *command.aliases)}
    assert not taken & {
        name for command in ours.commands for name in (command.key, *command.aliases)
    }


@pytest.mark.parametrize("typed", ["component", "card", "kb", "note oren", "ai oren"])
def test_builder_command_is_unknown_to_players(stage, typed):
    stage.player.cmdset.add(CharacterCmdSet)
    stage.player.cmdset.add(AICmdSet)
    assert "is not available" in stage.plays(typed)
