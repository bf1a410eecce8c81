"""The commands `ask` and `tell`: what players say aloud to an NPC, and the game's own commands."""

from typing import Any

import pytest
from evennia.commands.cmdset import CmdSet
from evennia.commands.default.cmdset_character import CharacterCmdSet
from evennia.commands.default.help import CmdHelp
from evennia.commands.default.muxcommand import MuxCommand

from evennia_ai import models
from evennia_ai.commands.cmdset import AICmdSet


class CmdOwnTell(MuxCommand):
    """Show what it was called with."""

    key = "page"
    aliases = ["tell"]
    switch_options = ("last",)

    def func(self) -> None:
        told = (self.cmdstring, self.switches, self.lhs, self.rhs, self.cmdset is not None)
        self.msg(f"own: {told}")


class OwnCmdSet(CmdSet):
    """A game's own command `tell`."""

    key = "own"
    priority = -10

    def at_cmdset_creation(self) -> None:
        self.add(CmdOwnTell())


@pytest.fixture
def model(stage: Any) -> Any:
    with stage.model(*["Aye."] * 5) as scripted:
        yield scripted


@pytest.fixture
def own(stage: Any, model: Any) -> Any:
    stage.player.cmdset.add(OwnCmdSet)
    return stage


def said() -> list[str]:
    return list(models.Record.objects.filter(kind="user").values_list("body", flat=True))


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("ask oren about the ferry", "Tell me about the ferry."),
        ("ask Oren About the ferry?", "Tell me about the ferry."),
        ("ask oren for a rope", "May I have a rope?"),
        ("ask oren to row me over.", "Please row me over."),
        ("ask oren when the ferry leaves", "When the ferry leaves?"),
        ("ask oren, is the ferry late?", "Is the ferry late?"),
        ("ask oren = about the ferry", "Tell me about the ferry."),
        ("ask old ferryman about {speaker}", "Tell me about {speaker}."),
        ("tell oren good evening", "Good evening"),
        ("tell oren = hello", "Hello"),
        ('tell oren "Good evening."', "Good evening."),
        ("tell oren that I am back", "I am back."),
        ("tell oren about the wreck", "Let me tell you about the wreck."),
        ("tell oren to go home", "Please go home."),
        ("TELL oren hello", "Hello"),
    ],
)
def test_npc_is_told_in_words_what_a_player_asks_or_tells(
    stage: Any, model: Any, typed: str, text: str
) -> None:
    stage.npc.aliases.add("old ferryman")
    told = stage.plays(typed)
    stage.waited()
    assert said() == [text]
    assert f'You say to Oren, "{text}"' in told.replace("{{", "{")
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("ask oren", "Usage: ask <name>"),
        ("tell oren", "Usage: ask <name>"),
        ("ask mara about the ferry", "nobody called 'mara' here"),
        ("tell nobody hello", "nobody called 'nobody' here"),
    ],
)
def test_line_that_means_nobody_gets_one_clear_line_when_the_game_has_no_such_command(
    stage: Any, model: Any, typed: str, words: str
) -> None:
    assert words in stage.plays(typed)
    assert said() == []


@pytest.mark.parametrize(
    ("typed", "called"),
    [
        ("tell mara hello", ("tell", [], "mara hello", None, True)),
        ("tell mara = hello", ("tell", [], "mara", "hello", True)),
        ("tell mara,oren = hello", ("tell", [], "mara,oren", "hello", True)),
        ("tell ore hello", ("tell", [], "ore hello", None, True)),
        ("tell", ("tell", [], "", None, True)),
        ("tell/last", ("tell", ["last"], "", None, True)),
        ("page oren = hello", ("page", [], "oren", "hello", True)),
    ],
)
def test_games_own_command_runs_unchanged_when_no_npc_is_meant(
    own: Any, typed: str, called: tuple[Any, ...]
) -> None:
    assert f"own: {called}" in own.plays(typed)
    assert said() == []


def test_npc_here_is_told_although_the_game_has_its_own_command(own: Any) -> None:
    assert "own:" not in own.plays("tell oren hello")
    assert said() == ["Hello"]


def test_games_own_command_is_not_run_when_the_player_may_not_use_it(
    own: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(CmdOwnTell, "lock_storage", "cmd:false()")
    assert "nobody called 'mara' here" in own.plays("tell mara hello")


def test_help_of_ask_shows_both_commands(stage: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(CmdHelp, "help_more", False)  # Nobody is connected, so no pager may open.
    stage.player.cmdset.add(CharacterCmdSet, persistent=False)
    stage.player.cmdset.add(AICmdSet)
    told = stage.plays("help ask")
    assert "ask <name> about <thing>" in told
    assert "tell <name> <text>" in told
