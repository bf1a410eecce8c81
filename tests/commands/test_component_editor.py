"""The line editor of `component/edit`: saving, conflicts, reloads."""

import pytest
from django.db import OperationalError
from evennia.utils import eveditor

from evennia_ai.engine.actors import trusted
from evennia_ai.store.authored import components as store
from tests.commands.stage import component, everything, on_screen


def after_reload(stage):
    """Forget what a reload forgets, and let the builder type more lines."""
    stage.builder.ndb._eveditor = None


def test_the_editor_opens_with_the_text_and_saves_what_was_typed(stage, mood):
    opened = stage.builds("component/edit mood")
    assert "The air is heavy." in opened
    told = stage.builds("And it smells of tar.", ":w", ":q")
    assert "Saved mood as revision 2." in told
    assert component("mood").content == "The air is heavy.\nAnd it smells of tar."


def test_editor_stores_nothing_without_saving(stage, mood):
    stage.builds("component/edit mood", "And more.", ":q!")
    assert component("mood").content == "The air is heavy."


def test_create_without_a_text_opens_the_editor(stage):
    stage.builds("component/create tide = 1201", "Low tide.", ":wq")
    assert component("tide").content.strip() == "Low tide."


@pytest.mark.req("S3-21")
def test_saving_over_another_builders_change_is_refused(stage, mood):
    stage.builds("component/edit mood", "And mine.")
    store.update("mood", by=trusted("Tam"), content="Tam's words.")
    told = stage.builds(":w")
    assert "Not saved" in told
    assert "changed by Tam" in told
    assert component("mood").content == "Tam's words."


def test_lore_editor_saves_twice_without_a_conflict(stage, mood):
    told = stage.builds("component/edit mood", "One.", ":w", "Two.", ":wq")
    assert "Not saved" not in told
    assert component("mood").content == "The air is heavy.\nOne.\nTwo."


def test_a_bad_template_is_not_saved_and_the_text_stays_in_the_editor(stage, mood):
    told = stage.builds("component/edit mood", "{% for x in y %}", ":w")
    assert "Not saved: line" in told
    assert component("mood").content == "The air is heavy."
    assert "{% for x in y %}" in stage.builds(":")


def test_the_editor_survives_a_reload_and_saves(stage, mood):
    stage.builds("component/edit mood", "Before the reload.")
    after_reload(stage)
    stage.builds("After it.", ":wq")
    assert component("mood").content == "The air is heavy.\nBefore the reload.\nAfter it."


def test_lore_editor_reports_a_conflict_also_after_a_reload(stage, mood):
    stage.builds("component/edit mood", "Mine.")
    after_reload(stage)
    store.update("mood", by=trusted("Tam"), content="Tam's words.")
    assert "changed by Tam" in stage.builds("More.", ":w")
    assert component("mood").content == "Tam's words."


def test_component_editor_says_that_the_component_was_removed_meanwhile(stage, mood):
    stage.builds("component/edit mood", "Mine.")
    store.COMPONENTS.remove("mood", by=trusted("Tam"))
    assert "no component 'mood'" in stage.builds(":w")
    assert not [c for c in everything() if c.key == "mood"]


def test_leaving_the_editor_removes_its_attribute(stage, mood):
    stage.builds("component/edit mood", ":q")
    names = {attribute.key for attribute in stage.builder.attributes.all()}
    assert not {"edited_text", "_eveditor_saved", "_eveditor_buffer_temp"} & names
    assert not stage.builder.cmdset.has(eveditor.EvEditorCmdSet)


def test_a_static_component_can_be_edited(stage):
    stage.builds("component/edit goals", "He wants his boat back.", ":wq")
    assert component("goals").content.strip() == "He wants his boat back."


def test_colour_codes_in_the_editor_are_shown_as_text(stage, mood):
    store.update("mood", by=trusted("Mara"), content="|rred|n {x}")
    assert "|rred|n {x}" in on_screen(stage.sent(stage.builder, "component/edit mood"))


@pytest.mark.parametrize("leaving", [[":wq"], [":q", "y"]])
def test_unsaved_text_is_shown_when_the_editor_is_left(stage, mood, leaving):
    stage.builds("component/edit mood", "My |rlong|n line.")
    store.update("mood", by=trusted("Tam"), content="Tam's words.")
    told = stage.builds(*leaving)
    assert "changed by Tam" in told
    assert told.rstrip().endswith("The air is heavy.\nMy |rlong|n line.")
    assert component("mood").content == "Tam's words."


def test_leaving_after_saving_says_nothing_of_a_loss(stage, mood):
    assert stage.builds("component/edit mood", "One.", ":wq").rstrip().endswith("Left the editor.")


def test_unexpected_error_is_shown_and_the_text_stays_in_the_editor(stage, mood, monkeypatch):
    stage.builds("component/edit mood", ":DD", "New words.")
    monkeypatch.setattr(store, "update", _broken)
    told = stage.builds(":w", ":q!")
    assert "Not saved: OperationalError: the disk is gone" in told
    assert "New words." in told


def _broken(*_asked, **_more):
    raise OperationalError("the disk is gone")
