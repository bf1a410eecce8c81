"""`ai/memory`: what an NPC remembers, shown and written by builders."""

import pytest

from evennia_ai.commands.setup.component_shown import unknown_names_warning
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.store import memories
from tests.commands.stage import one_line
from tests.engine.memory.builders import a_memory

BAD_INPUT = {
    "ai/memory": "Usage",
    "ai/memory nobody": "no NPC called 'nobody'",
    "ai/memory oren =": "no text after '='",
    "ai/memory oren = |r": "this text is empty",
    "ai/memory oren = " + "word " * 80: "at most 300 characters",
    "ai/memory oren = about nobody: They sing.": "no player called 'nobody'",
    "ai/memory oren/0": "whole number from 1 on",
    "ai/memory oren/2": "There is no page 2",
    "ai/memory oren/#999": "never had a memory #999",
    "ai/memory oren/#999 = It rains.": "There is no memory of NPC",
    "ai/memory oren/#999 = remove": "There is no memory of NPC",
    "ai/memory oren/#{id} = importance 11": "importance 11",
    "ai/memory oren/#{id} = importance 0": "importance 0",
}


def learn(stage, text: str, **fields):
    now = hours_now()
    new = a_memory(text, id=memories.NEW, created_at=now, recalled_at=now, **fields)
    return memories.add_memory(stage.npc.ai.ref, new, by=trusted("npc"), most=99).memory


def kept(stage) -> list[str]:
    return [memory.text for memory in memories.held_by(stage.npc.ai.ref).memories]


def read(stage, line: str) -> str:
    return " ".join(stage.builds(line).split())


def test_an_npc_that_remembers_nothing_says_how_to_write_something(stage):
    assert "ai/memory Oren = <text>" in read(stage, "ai/memory oren")


def test_a_builder_adds_a_memory_of_the_world(stage):
    told = one_line(stage.builds("ai/memory oren = The ferry is lost."))

    (memory,) = memories.held_by(stage.npc.ai.ref).memories
    assert (memory.text, memory.about, memory.author) == ("The ferry is lost.", "", "Mara")
    assert told == f"Oren remembers this now: memory #{memory.id}, importance 5."


def test_a_builder_adds_a_memory_of_a_player(stage):
    told = one_line(stage.builds("ai/memory oren = about pim: Pim owes Oren a rope."))

    (memory,) = memories.held_by(stage.npc.ai.ref).memories
    assert (memory.text, memory.about) == ("Pim owes Oren a rope.", str(stage.player.id))
    assert f"about Pim (#{stage.player.id})" in told


def test_memory_command_says_that_the_npc_knows_an_added_memory_already(stage):
    stage.builds("ai/memory oren = The ferry is lost.")

    assert "knew this already" in read(stage, "ai/memory oren = The ferry is lost!")


def test_memory_about_the_npc_itself_gets_a_hint(stage):
    told = read(stage, "ai/memory oren = Oren is a dragon.")

    assert kept(stage) == ["Oren is a dragon."]
    assert "in its card or in the component character_context instead" in told


def test_list_scores_memories_against_the_last_words(stage):
    learn(stage, "The ferry is lost.", importance=3)
    learn(stage, "Pim broke an oar.", about=str(stage.player.id))
    with stage.model("Aye."):
        stage.player.at_say("Oren, where is my oar?")
        stage.waited()
        told = read(stage, "ai/memory oren")

    assert "What Oren remembers, 2 of at most 500, page 1 of 1" in told
    first, second = told.index("broke an oar"), told.index("The ferry is lost")
    assert first < second
    assert "importance 0.44, relevance 0." in told
    assert f"about Pim (#{stage.player.id})" in told


def test_whispered_memory_is_marked(stage):
    learn(stage, "Pim hid the gold.", about=str(stage.player.id), learnt="private")

    assert "WHISPERED" in read(stage, "ai/memory oren")


def test_score_of_a_hidden_memory_ignores_its_words(stage):
    about = str(stage.player.id)
    learn(stage, "Pim hid the gold under the mill.", about=about, learnt="private", scene="mill")
    learn(stage, "Pim broke an oar.", about=about)

    def rows(line: str) -> list[str]:
        with stage.model("Aye."):
            stage.builder.at_say(line)
            stage.waited()
            told = stage.builds("ai/memory oren").splitlines()
        return sorted(row for row in told if row.startswith("#") or "said in private" in row)

    before = rows("Oren, the rain, the wind?")
    assert rows("Oren, the gold, the mill?") == before
    assert rows("Oren, an oar?") != before


def test_memory_list_has_pages(stage):
    for number in range(13):
        learn(stage, f"Boat number {number} is gone.")

    assert "More: ai/memory Oren/2" in read(stage, "ai/memory oren")
    assert "page 2 of 2" in read(stage, "ai/memory oren/2")


def test_one_memory_is_shown_with_its_changes(stage):
    made = learn(stage, "The ferry is lost.", turn=4)
    stage.builds(f"ai/memory oren/#{made.id} = The ferry is found.")
    stage.builds(f"ai/memory oren/#{made.id} = importance 9")
    told = read(stage, f"ai/memory oren/#{made.id}")

    assert f"memory #{made.id}, importance 9, learnt" in told
    assert "turn 4, recalled last" in told
    assert "created by npc importance 5: The ferry is lost." in told
    assert "updated by Mara importance 9: The ferry is found." in told


def test_a_removed_memory_is_gone_and_its_changes_are_shown(stage):
    made = learn(stage, "The ferry is lost.")
    told = one_line(stage.builds(f"ai/memory oren/#{made.id} = remove"))

    assert told == (f"Oren no longer remembers memory #{made.id}, importance 5: The ferry is lost.")
    assert kept(stage) == []
    shown = read(stage, f"ai/memory oren/#{made.id}")
    assert f"no longer remembers #{made.id}" in shown
    assert "removed by Mara" in shown


@pytest.mark.parametrize("line", BAD_INPUT)
def test_bad_input_is_one_line_and_changes_nothing(stage, line):
    made = learn(stage, "The ferry is lost.")
    told = one_line(stage.builds(line.format(id=made.id)))

    assert BAD_INPUT[line] in told
    assert kept(stage) == ["The ferry is lost."]


def test_memory_is_refused_to_players(stage):
    learn(stage, "The ferry is lost.")

    assert "ferry" not in stage.plays("ai/memory oren")


def test_no_markup_of_a_memory_reaches_the_screen(stage):
    stage.builds("ai/memory oren = |rThe ferry|n is |lcquit|ltlost|le.")

    assert kept(stage) == ["The ferry is lost."]


def test_name_memories_is_known_only_in_its_component():
    text = "Known: {{memories}} and {{memoirs}}"
    place, other = (
        PromptComponent(id=number, key=key, content=text)
        for number, key in ((2000, "semantic_memories"), (1200, "mood"))
    )

    assert "No value is called {{memoirs}}," in unknown_names_warning(place)
    assert "No value is called {{memories}}, {{memoirs}}," in unknown_names_warning(other)


def test_why_shows_score_and_place_of_a_memory(stage):
    made = learn(stage, "The ferry is lost.")
    with stage.model("Aye."):
        stage.player.at_say("Oren, where is the ferry?")
        stage.waited()
        told = read(stage, f"ai/why oren = memory:{made.id}")

    assert "memory: kept: score 0." in told
    assert "| - The ferry is lost." in told
