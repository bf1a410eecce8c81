"""`ai/tools`: what an NPC may do besides answering, shown and chosen by a builder."""

import pytest

from evennia_ai.engine.actors import THE_GAME

BAD_INPUT = {
    "ai/tools": "Usage: ai/tools <npc> [= <tools>]",
    "ai/tools nobody": "no NPC called 'nobody'",
    "ai/tools oren =": "Name up to 50 tools, or 'none'",
    "ai/tools oren = ,": "Name up to 50 tools, or 'none'",
    "ai/tools oren = fly": "There is no tool 'fly'; there are drop,",
    "ai/tools oren = tke": "There is no tool 'tke'; did you mean 'take'?",
    "ai/tools oren = say, none": "There is no tool 'none'",
    "ai/tools oren = +say, look": "only changes with + and -",
    "ai/tools oren = -say": "It has no tool 'say'",
    "ai/tools oren = +": "There is no tool ''",
    "ai/tools oren = |lcquit|ltsay|le": "There is no tool",
    "ai/tools oren = " + "say, " * 60: "Name up to 50 tools",
}


def tools_of(stage):
    from evennia_ai.npc.npc_settings import settings_of

    return settings_of(stage.npc).tools


@pytest.mark.parametrize("line", BAD_INPUT)
def test_tools_errors_change_nothing(stage, line):
    told = stage.builds(line)
    assert BAD_INPUT[line] in told
    assert tools_of(stage) == ()


def test_an_npc_has_no_tool_until_a_builder_gives_it_some(stage):
    told = stage.builds("ai/tools oren").splitlines()
    assert told[:3] == [
        "What Oren may do besides answering:",
        "  nothing",
        "What it could be given:",
    ]


def test_tools_may_be_named_with_blanks_between_them(stage):
    stage.builds("ai/tools oren = say look")
    stage.builds("ai/tools oren = + give -say")
    assert tools_of(stage) == ("give", "look")


def test_each_line_fits_a_terminal(stage):
    stage.builds("ai/tools oren = remember, end_conversation")
    assert max(map(len, stage.builds("ai/tools oren").splitlines())) <= 78


def test_each_tool_is_shown_with_what_it_does_and_its_danger(stage):
    told = stage.builds("ai/tools oren")
    assert "  look - Look around where you are, or look at somebody or something here." in told
    assert "  take (dangerous) - Pick up something that lies here." in told


def test_naming_tools_replaces_all_tools(stage):
    stage.builds("ai/tools oren = look, take")
    assert stage.builds("ai/tools oren = say, Look") == "Oren may look, say besides answering."
    assert tools_of(stage) == ("look", "say")


def test_plus_adds_a_tool_and_minus_removes_one(stage):
    stage.builds("ai/tools oren = look, say", "ai/tools oren = +give, -say")
    assert tools_of(stage) == ("give", "look")


def test_none_removes_all_tools(stage):
    stage.builds("ai/tools oren = look, say")
    assert stage.builds("ai/tools oren = none") == "Oren may do nothing besides answering."
    assert tools_of(stage) == ()


def test_tools_change_is_logged_with_its_author(stage):
    from evennia_ai.npc.npc_settings import changes_of

    stage.builds("ai/tools oren = look")
    (change,) = changes_of(stage.npc)
    assert (change.by, change.name, change.new) == ("Mara", "tools", ["look"])


def test_removed_tool_is_a_problem_and_can_be_taken_away(stage):
    from evennia_ai.npc.npc_settings import change_settings

    change_settings(stage.npc, tools=("fly", "look"), by=THE_GAME)
    assert "its tool 'fly' no longer exists in this game" in stage.builds("ai oren")
    assert "  fly - no longer a tool of the game" in stage.builds("ai/tools oren")
    stage.builds("ai/tools oren = -fly")
    assert tools_of(stage) == ("look",)


def test_tools_is_refused_to_players(stage):
    stage.plays("ai/tools oren = give")
    assert tools_of(stage) == ()
