"""`ai/keep` and `ai/kept`: who may keep an answer, what its file holds, what an edit changes."""

import pytest
from django.test import override_settings
from twisted.internet.defer import maybeDeferred

from evennia_ai.commands import kept_cases
from evennia_ai.formats.kept import read_case
from tests.commands.stage import one_line
from tests.modes import is_open_to_others

NAME = "oren-asks-when-the-ferry-runs"
KEEP = "ai/keep oren = asks when the ferry runs"


@pytest.fixture
def kept_folder(stage, tmp_path, monkeypatch):
    """Return the folder of kept cases, which does not exist yet."""
    monkeypatch.setattr(kept_cases, "in_thread", maybeDeferred)
    monkeypatch.setattr(kept_cases, "in_steps", lambda steps: maybeDeferred(list, steps))
    monkeypatch.setattr(kept_cases, "_differing", set())
    with override_settings(EVENNIA_AI_KEPT_FOLDER=str(tmp_path / "kept")):
        yield tmp_path / "kept"


@pytest.fixture
def talked(stage):
    """Let Oren answer Pim twice in the room, where one entry of lore is active."""
    stage.builds(
        "lore/create harbour/the ferry = ferry: The ferry crosses twice a day.",
        "lore/assign harbour = game",
    )
    with stage.model("Aye.", "At dusk."):
        for line in ("Oren, are you there?", "Oren, when does the ferry run?"):
            stage.player.at_say(line)
            stage.waited()
        yield


def test_kept_case_has_the_words_of_its_turn_and_no_text_of_a_builder(stage, talked, kept_folder):
    told = one_line(stage.builds(KEEP))
    case = read_case(kept_folder / f"{NAME}.yaml")

    assert f"Kept turn 2 of Oren as {NAME} in " in told
    assert case.about == "asks when the ferry runs"
    assert (case.npc.name, case.speaker.name, case.reply) == ("Oren", "Pim", "At dusk.")
    assert case.inputs.event.content == "Oren, when does the ferry run?"
    assert [one.content for one in case.inputs.history] == ["Oren, are you there?", "Aye."]
    assert "twice a day" not in repr(case.inputs)
    assert "twice a day" in repr(case.expect.prompt)
    assert case.seen["book:harbour"] == "1"
    assert not is_open_to_others(kept_folder / f"{NAME}.yaml")
    assert [one.name for one in kept_folder.iterdir()] == [f"{NAME}.yaml"]


def test_second_case_about_the_same_gets_a_number(stage, talked, kept_folder):
    stage.builds(KEEP, KEEP, "ai/keep oren/1")
    names = sorted(path.stem for path in kept_folder.iterdir())
    assert names == ["oren-1", NAME, f"{NAME}-2"]


def test_edit_of_lore_is_told_shown_and_accepted(stage, talked, kept_folder):
    stage.builds(KEEP)
    edited = stage.builds("lore/off harbour/the ferry")
    again = stage.builds("component/create mood = 1200, system: The air is heavy.")
    shown = stage.builds(f"ai/kept {NAME}")

    assert "1 kept answer gets another prompt: ai/kept" in edited
    assert "another prompt" not in again, "this case differed before"
    assert f"  DIFFERS    {NAME}: asks when the ferry runs" in stage.builds("ai/kept")
    assert "left lore:harbour#0 (the ferry), -" in shown
    assert "- The ferry crosses twice a day." in shown
    assert "entered component:mood, +" in shown
    assert "+ The air is heavy." in shown

    assert "Accepted" in stage.builds(f"ai/kept/accept {NAME}")
    assert f"  same       {NAME}" in stage.builds("ai/kept")
    assert "is the same as it was kept" in stage.builds(f"ai/kept/accept {NAME}")


def test_question_of_a_revert_says_how_many_kept_answers_it_changes(stage, talked, kept_folder):
    stage.builds(
        "note oren = He yawns.",
        "note oren = He sings.",
        "component/create mood = 1200: Calm.",
        "component/edit mood = Angry.",
        "lore/edit harbour/the ferry = The ferry crosses at noon.",
    )
    with stage.model("At noon."):
        stage.player.at_say("Oren, when does the ferry run?")
        stage.waited()
    stage.builds(KEEP)
    table = ("note/revert oren = 1", "component/revert mood = 1", "lore/revert harbour = 1")
    for typed in table:
        told = stage.builds(typed, "no")
        assert "1 kept answer would get another prompt." in told, typed
        assert f"  same       {NAME}" in stage.builds("ai/kept"), typed
    stage.builds("component/create fog = 1210: Fog.", "component/edit fog = Mist.")
    stage.builds(f"ai/kept/accept {NAME}", "component/off fog", f"ai/kept/accept {NAME}")
    assert "another prompt" not in stage.builds("component/revert fog = 3", "no")


def test_edit_without_effect_on_kept_cases_says_nothing(stage, talked, kept_folder):
    stage.builds(KEEP)
    told = stage.builds("lore/create harbour/fog = fog: Fog hides the quay.")
    assert "another prompt" not in told
    assert "twice" not in stage.builds(f"ai/kept {NAME}")


def test_context_that_leaves_a_component_out_changes_a_kept_case(stage, talked, kept_folder):
    stage.builds(KEEP)
    assert "1 kept answer gets another prompt" in stage.builds(
        "component/context conversation = off entity_context"
    )
    assert "left component:entity_context" in stage.builds(f"ai/kept {NAME}")


def test_whisper_is_kept_shown_and_accepted_only_by_admins(stage, kept_folder):
    with stage.model("Psst."):
        stage.player.at_say("The tunnel is open.", receivers=[stage.npc], whisper=True)
        stage.waited()
    assert "hide from you. Nothing was written" in one_line(stage.builds("ai/keep oren = tunnel"))
    assert not kept_folder.exists()

    stage.builder.permissions.add("Admin")
    stage.builds("ai/keep oren = tunnel")
    assert "The tunnel is open." in (kept_folder / "oren-tunnel.yaml").read_text()

    stage.builds("component/create mood = 1200, system: The air is heavy.")
    stage.builder.permissions.remove("Admin")
    for typed in ("ai/kept oren-tunnel", "ai/kept/accept oren-tunnel"):
        told = stage.builds(typed)
        assert "hide from you" in told
        assert "tunnel is open" not in told
    assert "  DIFFERS    oren-tunnel" in stage.builds("ai/kept")


def test_case_in_which_a_lock_hides_lore_is_not_shown(stage, talked, kept_folder):
    stage.builds(KEEP)
    stage.builds("component/create mood = 1200, system: The air is heavy.")
    stage.builder.permissions.add("Admin")
    stage.builds("lore/lock harbour/the ferry = view:perm(Admin)")
    stage.builder.permissions.remove("Admin")
    told = stage.builds(f"ai/kept {NAME}")
    assert "hide from you" in told
    assert "twice a day" not in told
    assert "hide from you" in one_line(stage.builds("ai/keep oren"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("kept: 1\nnpc: !!python/object/apply:os.system [ls]\n", "line 2"),
        ("kept: 2\n", "has format version 2, and this program reads version 1"),
    ],
)
def test_unreadable_case_is_listed_with_its_problem(stage, kept_folder, text, told):
    kept_folder.mkdir()
    (kept_folder / "broken.yaml").write_text(text)
    assert "  UNREADABLE broken: " in stage.builds("ai/kept")
    assert told in stage.builds("ai/kept broken")
    assert told in stage.builds("ai/kept/accept broken")
    assert (kept_folder / "broken.yaml").read_text() == text


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("ai/keep", "Usage: ai/keep <npc>[/<turn>]"),
        ("ai/keep oren/9", "no turn 9"),
        ("ai/kept nothing", "There is no kept case file 'nothing'"),
        ("ai/kept ../secret", "There is no kept case file '../secret'"),
        ("ai/kept/accept", "Usage: ai/kept/accept <case>"),
        ("ai/kept = x", "takes no '='"),
    ],
)
def test_kept_errors_write_nothing(stage, talked, kept_folder, typed, problem):
    assert problem in one_line(stage.builds(typed))
    assert not kept_folder.exists()


def test_game_without_kept_cases_says_how_to_keep_one(stage, kept_folder):
    assert "There are no kept cases in" in stage.builds("ai/kept")


def test_reactor_is_free_between_two_checked_cases(stage, talked, kept_folder, monkeypatch):
    steps = []
    monkeypatch.setattr(
        kept_cases, "in_steps", lambda each: maybeDeferred(steps.extend, list(each))
    )
    stage.builds(KEEP, KEEP, "ai/keep oren/1")
    stage.builds("ai/kept")
    assert len(steps) == 3
