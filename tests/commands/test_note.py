"""The command `note`, from the typed line to the stored notes."""

import pytest

from evennia_ai.engine.actors import trusted
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
    "note/depth oren = normal": "has no ID",
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
    "note/place oren": "Usage",
    "note/place oren = beside goals": "no place of a note",
    "note/place oren = after": "no place of a note",
    "note/place oren = after goal": "no component 'goal'; did you mean goals?",
    "note/place nobody = after goals": "no NPC called 'nobody'",
    "note/when oren": "Usage",
    "note/when oren = late": "it must be <fact> <test> <value>",
    "note/when oren = time.hour >= late": "time.hour >= and a number",
    "note/when nobody = off": "no NPC called 'nobody'",
    "note/remove oren = yes": "takes no '='",
    "note/remove": "Usage",
    "note/remove nobody": "no NPC called 'nobody'",
    "note oren/The Scene = text": "small letters, digits",
    "note oren/scene": "no note 'scene'; there are note",
    "note/depth oren/scene = 2": "no note 'scene'",
    "note/remove oren/scene": "no note 'scene'",
    "note/order oren = first": "whole number",
    "note/on oren = yes": "takes no '='",
    "note/off": "Usage",
    "note/edit": "Usage",
    "note/edit oren =": "no text after '='",
    "note/revisions oren = 9": "revision",
    "note/revisions oren/scene": "no note 'scene'",
    "note/revert oren": "Usage",
    "note/revert oren = 9": "revision",
    "note/revert oren = last": "whole number",
    "note/detph oren = 3": "There is no",
    "note/ oren = 3": "There is no",
    "note//depth oren = 3": "one switch at a time",
    "note /depth oren = 3": "directly after",
    "note/depth/every oren = 3": "one switch at a time",
    "note/cleer oren = 3": "There is no",
}


def test_bad_input_gets_one_clear_line_and_changes_nothing(stage, noted, ref):
    before = store.notes_for(ref)
    for typed, words in BAD_INPUT.items():
        assert words.lower() in one_line(stage.builds(typed)).lower(), typed
        assert store.notes_for(ref) == before, typed


@pytest.mark.req("S3-09")
def test_new_note_is_at_depth_four(stage, ref):
    told = stage.builds("note oren = The ferry = late, {{user}}.")
    [note] = store.notes_for(ref)
    assert note.content == "The ferry = late, {{user}}."
    assert (note.depth, note.role, note.every) == (4, "system", 1)
    assert "depth 4" in told


def test_bottom_is_after_the_newest_message(stage, noted, ref):
    assert "at the bottom (after" in stage.builds("note/depth oren = bottom")


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
    "floating": "note at depth 4 (4 messages follow it), role system, always used",
    "anchored": "note at depth 4 (4 messages follow it), anchored, role system, always used",
    "tail": "note of the mode tail (it stays where it was said), role system, said again after"
    " every message",
}


@pytest.mark.parametrize("mode", SHOWN)
def test_note_shows_its_mode(stage, noted, mode):
    stage.builds(f"note/mode oren = {mode}")
    assert SHOWN[mode] in " ".join(stage.builds("note oren").split())


def test_tail_note_says_when_it_is_repeated(stage, noted):
    stage.builds("note/every oren = 3", "note/mode oren = tail")
    assert "said again after every 3 messages" in " ".join(stage.builds("note oren").split())


def test_note_can_be_placed_next_to_a_component_and_back(stage, noted, ref):
    assert "right after the component goals" in stage.builds("note/place oren = after Goals")
    assert store.notes_for(ref)[0].place == "after goals"
    assert "at depth 4" in stage.builds("note/place oren = history")
    assert store.notes_for(ref)[0].place == ""


def test_note_is_left_out_while_its_conditions_are_not_met_and_reverts(stage, noted, ref):
    told = " ".join(stage.builds("note/when oren = npc.tags has_any tired").split())
    assert "system, used only when npc.tags has_any tired" in told and "when: - always" in told
    assert "off now: npc.tags must have tired" in stage.builds("ai/why oren = note")
    assert "The ferry is late." not in stage.builds("component/preview/full oren")
    stage.npc.tags.add("tired")
    assert "The ferry is late." in stage.builds("component/preview/full oren")
    stage.builds("note/when oren = off")
    assert store.notes_for(ref)[0].when == ""
    stage.builds("note/revert oren = 2", "yes")
    assert store.notes_for(ref)[0].when == "npc.tags has_any tired"


@pytest.mark.parametrize(
    "typed", ["note/depth oren = 2", "note/every oren = 2", "note/mode oren = tail"]
)
def test_switch_creates_no_note(stage, ref, typed):
    assert "no note yet" in stage.builds(typed)
    assert not store.notes_for(ref)


def test_note_without_switch_shows_and_changes_nothing(stage, noted, ref):
    before = store.notes_for(ref)
    told = stage.builds("note oren")
    assert "The ferry is late." in told
    assert "always used" in told
    assert store.notes_for(ref) == before


def test_clear_removes_the_note(stage, noted, ref):
    assert "no note now" in stage.builds("note/remove oren")
    assert not store.notes_for(ref)
    assert "had no note" in stage.builds("note/remove oren")


def test_hostile_note_is_shown_literally(stage, ref):
    store.set_note(ref, by=trusted("Mara"), content="|rred|n {x} |lclook|ltgo|le \x1b[2J")
    sent = stage.sent(stage.builder, "note oren")
    assert "\x1b" not in sent
    assert "|rred|n {x}" in on_screen(sent)
    assert "|lc" not in on_screen(sent)


def test_a_player_cannot_set_a_note(stage, ref):
    with hearing(stage.player):
        stage.player.execute_cmd("note oren = Obey me.")
    assert not store.notes_for(ref)


def test_note_command_says_that_a_very_deep_note_is_at_the_top_of_the_history(stage):
    stage.builds("note oren = Hush.")
    told = stage.builds("note/depth oren = 1000000000")
    assert "at the top of the history" in told
    assert "1000000000" not in told


@pytest.fixture
def two(stage, noted):
    stage.builds("note oren/scene = The tavern closes. Hurry.", "note/depth oren/scene = bottom")


def test_note_command_shows_the_old_and_the_new_text_when_a_note_changes(stage, noted):
    told = stage.builds("note oren = The ferry is lost.")
    assert "revision 2" in told
    assert [line for line in told.splitlines() if line[:2] in ("- ", "+ ")] == [
        *("- The ferry is late.", "+ The ferry is lost.")
    ]
    assert "has these values already" in stage.builds("note oren = The ferry is lost.")


def test_all_notes_are_listed_and_each_is_shown_in_full(stage, two):
    told = stage.builds("note oren")
    rows = [line.split()[:4] for line in told.splitlines() if "system" in line]
    assert rows == [["note", "on", "4", "1"], ["scene", "on", "bottom", "1"]]
    assert "The tavern closes. Hurry." in stage.builds("note oren/scene")
    assert "The tavern closes" not in stage.builds("note oren/note")


def test_switch_changes_only_the_note_of_its_key(stage, two, ref):
    stage.builds("note/every oren/SCENE = 3", "note/order oren/scene = -5", "note/off oren/scene")
    first, second = store.notes_for(ref)
    assert (first.key, first.every, first.order, first.enabled) == ("scene", 3, -5, False)
    assert (second.every, second.order, second.enabled) == (1, 100, True)
    assert "off, used once every 3 messages" in " ".join(stage.builds("note oren/scene").split())
    stage.builds("note/on oren/scene")
    assert store.notes_for(ref)[0].enabled


def test_a_note_that_is_off_is_in_no_prompt_and_its_key_names_the_others(stage, two):
    stage.builds("note/off oren")
    report = stage.builds("component/preview/full oren")
    assert "note:scene" in report
    assert "note:note: expansion: off: note/on Oren turns it on" in report
    assert "The ferry is late." not in report
    assert "note/edit Oren/scene" in stage.builds("component oren")


def test_a_revert_shows_what_it_changed(stage, noted, ref):
    stage.builds("note oren = The ferry is lost.", "note/depth oren = 0")
    told = stage.builds("note/revert oren = 1", "yes")
    assert "what it was at revision 1" in told
    for line in ("- The ferry is lost.", "+ The ferry is late.", "depth:", "- bottom", "+ 4"):
        assert line in told.splitlines(), told
    assert "the same as at revision 1" in stage.builds("note/revert oren = 1")


def test_revisions_name_authors_and_one_shows_its_change(stage, noted, ref):
    stage.builds("note oren = The ferry is lost.", "note/depth oren = 1", "note/remove oren")
    told = stage.builds("note/revisions oren")
    assert [line.split()[0] for line in told.splitlines() if " by " in line] == ["1", "2", "3", "4"]
    assert "+ The ferry is lost." in stage.builds("note/revisions oren = 2").splitlines()
    assert "Revision 4 removed note" in stage.builds("note/revert oren = 4")
    stage.builds("note/revert oren = 3", "yes")
    assert store.notes_for(ref)[0].content == "The ferry is lost."


def test_revision_names_the_state_as_it_is_typed(stage, noted, ref):
    assert stage.builds("note/off oren").splitlines()[-3:] == ["state:", "- on", "+ off"]
    told = stage.builds("note/remove oren")
    assert "note/revert Oren = 2 brings it back." in told
    stage.builds("note/revert oren = 2", "yes")
    assert not store.notes_for(ref)[0].enabled


def test_one_note_is_cleared_and_can_come_back(stage, two, ref):
    told = stage.builds("note/remove oren/scene")
    assert "still has the notes note" in told
    assert [note.key for note in store.notes_for(ref)] == ["note"]
    assert "no note 'scene'" in one_line(stage.builds("note/remove oren/scene"))
    stage.builds("note/revert oren/scene = 2", "yes")
    assert store.notes_for(ref)[1].depth == 0


def test_a_note_is_written_in_the_editor(stage, noted, ref):
    stage.builds("note/edit oren/scene", "The tavern closes.", ":wq")
    assert [note.content for note in store.notes_for(ref)] == [
        *("The ferry is late.", "The tavern closes.")
    ]


def test_editor_refuses_to_overwrite_a_newer_change(stage, noted, ref):
    stage.builds("note/edit oren", "More.")
    store.set_note(ref, by=trusted("Mara"), content="Another.")
    told = stage.builds(":wq")
    assert "was changed by Mara" in told
    assert store.notes_for(ref)[0].content == "Another."


def test_an_npc_whose_name_holds_a_slash_is_found(stage):
    stage.npc.key = "Oren/Ned"
    stage.builds("note oren/ned = Hush.", "note oren/ned/scene = Late.")
    told = stage.builds("note oren/ned")
    assert ("note " in told, "scene" in told) == (True, True)
