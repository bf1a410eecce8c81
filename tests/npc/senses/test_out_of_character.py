"""Lines that players say out of character. NPCs do not hear them."""

from dataclasses import replace

import pytest

from evennia_ai.services.settings.conf import conf


@pytest.mark.parametrize(
    "line",
    [
        *("((brb, phone))", "(OOC: Oren, brb phone)", "ooc: what time is it?", "OOC who is up?"),
        *("[ooc] Oren, hello", "  ((Oren?"),
    ],
)
@pytest.mark.parametrize("way", ["says", "whispers"])
def test_out_of_character_line_is_not_recorded_and_not_answered(stage, line, way):
    stage.talks_with("Aye.")
    getattr(stage, way)(stage.anna, line)
    assert stage.model.requests == []
    assert stage.records() == [] and stage.records("private") == []


def test_line_that_only_contains_an_ooc_mark_is_answered(stage):
    stage.talks_with("Aye.", "Aye.")
    stage.says(stage.anna, "Oren, is that (ooc) or not?")
    stage.says(stage.anna, "Oren, the oocyte is a cell.")
    assert len(stage.model.requests) == 2


def test_ooc_marks_of_the_game_replace_the_default_marks(stage, monkeypatch):
    own = replace(conf(), ooc_marks=("//",))
    monkeypatch.setattr("evennia_ai.npc.senses.perception.conf", lambda: own)
    stage.talks_with("Aye.")
    stage.says(stage.anna, "// Oren, brb")
    assert stage.model.requests == []
    stage.says(stage.anna, "((Oren?))")
    assert len(stage.model.requests) == 1
