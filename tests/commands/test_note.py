"""The command `note`, typed by a builder, down to the stored notes."""

import pytest

from evennia_ai.store.authored import notes as store
from tests.commands.stage import hearing, on_screen, one_line


@pytest.fixture
def ref(stage):
    return str(stage.npc.id)


@pytest.fixture
def noted(stage):
    stage.builds("note oren = The ferry is late.")


BAD_INPUT = {
    "note oren =": "no text",
    "note": "Usage",
    "note = text": "Usage",
    "note nobody = text": "no NPC called 'nobody'",
    "note pim = text": "has no mind",
    "note oren = {% for x in y %}": "line 1",
    "note/depth oren = -1": "whole number, 0 or more",
    "note/depth oren = 2.5": "whole number, 0 or more",
    "note/depth oren = deep": "whole number, 0 or more",
    "note/depth oren = 4000000000": "whole number, 0 or more, at most 1000000000",
    "note/depth oren": "Usage",
    "note/depth oren =": "Usage",
    "note/depth nobody = 2": "no NPC called 'nobody'",
    "note/every oren = -1": "whole number, 0 or more",
    "note/every oren = often": "whole number, 0 or more",
    "note/every oren": "Usage",
    "note/role oren = wizard": "no role",
    "note/role oren = tool": "no role",
    "note/mode oren = stuck": "no mode of a note",
    "note/mode oren": "Usage",
    "note/mode oren =": "Usage",
    "note/mode nobody = tail": "no NPC called 'nobody'",
    "note/clear oren = yes": "Usage",
    "note/clear": "Usage",
    "note/clear nobody": "no NPC called 'nobody'",
    "note/detph oren = 3": "no switch",
    "note/ oren = 3": "no switch",
    "note//depth oren = 3": "one switch at a time",
    "note /depth oren = 3": "right behind",
    "note/depth/every oren = 3": "one switch at a time",
    "note/cleer oren = 3": "no switch",
}


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, noted, ref):
    before = store.notes_for(ref)
    for typed, words in BAD_INPUT.items():
        assert words.lower() in one_line(stage.builds(typed)).lower(), typed
        assert store.notes_for(ref) == before, typed


@pytest.mark.req("S3-09")
def test_a_note_is_set_by_its_text_and_stands_at_depth_four(stage, ref):
    told = stage.builds("note oren = The ferry = late, {{user}}.")
    [note] = store.notes_for(ref)
    assert note.content == "The ferry = late, {{user}}."
    assert (note.depth, note.role, note.every) == (4, "system", 1)
    assert "depth 4" in told


def test_a_new_text_keeps_depth_and_interval(stage, noted, ref):
    stage.builds("note/depth oren = 2", "note/every oren = 3", "note oren = It came.")
    [note] = store.notes_for(ref)
    assert (note.content, note.depth, note.every) == ("It came.", 2, 3)


def test_the_role_of_a_note_can_be_set(stage, noted, ref):
    stage.builds("note/role oren = Assistant")
    assert store.notes_for(ref)[0].role == "assistant"


@pytest.mark.parametrize("mode", ["anchored", "tail", "floating"])
def test_the_mode_of_a_note_can_be_set(stage, noted, ref, mode):
    stage.builds("note/depth oren = 2", f"note/mode oren = {mode.title()}")
    [note] = store.notes_for(ref)
    assert (note.mode, note.depth, note.content) == (mode, 2, "The ferry is late.")


SHOWN = {
    "floating": "note at depth 4 (4 messages follow it), role system, always due",
    "anchored": "note at depth 4 (4 messages follow it), anchored, role system, always due",
    "tail": "note of the mode tail (it stays where it was said), role system, said again after"
    " every message",
}


@pytest.mark.parametrize("mode", SHOWN)
def test_a_note_says_its_mode(stage, noted, mode):
    stage.builds(f"note/mode oren = {mode}")
    assert SHOWN[mode] in " ".join(stage.builds("note oren").split())


def test_a_note_of_the_mode_tail_says_when_it_is_said_again(stage, noted):
    stage.builds("note/every oren = 3", "note/mode oren = tail")
    assert "said again after every 3 messages" in " ".join(stage.builds("note oren").split())


@pytest.mark.parametrize(
    "typed", ["note/depth oren = 2", "note/every oren = 2", "note/mode oren = tail"]
)
def test_what_is_not_there_is_not_made_by_a_switch(stage, ref, typed):
    assert "no note yet" in stage.builds(typed)
    assert not store.notes_for(ref)


def test_the_bare_command_shows_the_note_and_changes_nothing(stage, noted, ref):
    before = store.notes_for(ref)
    told = stage.builds("note oren")
    assert "The ferry is late." in told
    assert "always due" in told
    assert store.notes_for(ref) == before


def test_clear_removes_the_note(stage, noted, ref):
    assert "no note any more" in stage.builds("note/clear oren")
    assert not store.notes_for(ref)
    assert "had no note" in stage.builds("note/clear oren")


def test_a_hostile_note_is_shown_as_it_is(stage, ref):
    store.set_note(ref, by="Mara", content="|rred|n {x} |lclook|ltgo|le \x1b[2J")
    sent = stage.sent(stage.builder, "note oren")
    assert "\x1b" not in sent
    assert "|rred|n {x}" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_a_player_cannot_set_a_note(stage, ref):
    with hearing(stage.player):
        stage.player.execute_cmd("note oren = Obey me.")
    assert not store.notes_for(ref)


def test_a_note_at_the_top_of_the_history_is_told_so(stage):
    stage.builds("note oren = Hush.")
    told = stage.builds("note/depth oren = 1000000000")
    assert "at the top of the history" in told
    assert "1000000000" not in told
