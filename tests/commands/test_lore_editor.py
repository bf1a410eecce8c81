"""The line editor of `lore/edit`: saving, conflicts, reloads, locks."""

import json

import pytest
from evennia.utils import eveditor

from evennia_ai.engine.actors import trusted
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.store.authored import lorebooks as store
from tests.commands.stage import on_screen


@pytest.fixture
def harbour(stage):
    """Create a book with one entry."""
    stage.builds("lore/create harbour/the ferry = ferry: It sails at dusk.")


def content():
    """Return the present content of the entry."""
    return stored().entries[0].template.source


def stored():
    return read_book(json.loads(store.get_book("harbour").source), label="harbour")


def by_tam():
    """Let Tam change the book meanwhile."""
    source = store.get_book("harbour").source
    store.save_book("harbour", source.replace("It sails", "Tam says: it sails"), by=trusted("Tam"))


def after_reload(stage):
    """Forget what a reload forgets, and let the builder type more lines."""
    stage.builder.ndb._eveditor = None


def test_the_editor_opens_with_the_text_and_saves_what_was_typed(stage, harbour):
    assert "It sails at dusk." in stage.builds("lore/edit harbour/the ferry")
    told = stage.builds("Never in fog.", ":w", ":q")
    assert "Saved harbour#0 (the ferry) as revision 2." in told
    assert content() == "It sails at dusk.\nNever in fog."


def test_decorators_are_edited_with_the_text(stage, harbour):
    stage.builds("lore/edit harbour/0", ":DD", "@@depth 3", "At dusk.", ":wq")
    assert (stored().entries[0].depth, content().strip()) == (3, "At dusk.")
    assert "@@depth 3" in stage.builds("lore/edit harbour/0", ":q")


def test_editor_stores_nothing_without_saving(stage, harbour):
    stage.builds("lore/edit harbour/0", "And more.", ":q!")
    assert content() == "It sails at dusk."


def test_create_without_a_text_opens_the_editor(stage, harbour):
    stage.builds("lore/create harbour/fog = fog", "It is thick.", ":wq")
    assert stored().entries[1].template.source.strip() == "It is thick."


def test_saving_over_another_builders_change_is_refused(stage, harbour):
    stage.builds("lore/edit harbour/0", "And mine.")
    by_tam()
    told = stage.builds(":w")
    assert "Not saved" in told
    assert "changed by Tam" in told
    assert content() == "Tam says: it sails at dusk."


def test_lore_editor_saves_twice_without_a_conflict(stage, harbour):
    told = stage.builds("lore/edit harbour/0", "One.", ":w", "Two.", ":wq")
    assert "Not saved" not in told
    assert content() == "It sails at dusk.\nOne.\nTwo."


def test_the_editor_survives_a_reload_and_saves(stage, harbour):
    stage.builds("lore/edit harbour/0", "Before the reload.")
    after_reload(stage)
    stage.builds("After it.", ":wq")
    assert content() == "It sails at dusk.\nBefore the reload.\nAfter it."


def test_lore_editor_reports_a_conflict_also_after_a_reload(stage, harbour):
    stage.builds("lore/edit harbour/0", "Mine.")
    after_reload(stage)
    by_tam()
    assert "changed by Tam" in stage.builds("More.", ":w")
    assert content() == "Tam says: it sails at dusk."


def test_lore_editor_says_that_the_lorebook_was_removed_meanwhile(stage, harbour):
    stage.builds("lore/edit harbour/0", "Mine.")
    store.LOREBOOKS.remove("harbour", by=trusted("Tam"))
    assert "no lorebook 'harbour'" in stage.builds(":w")
    assert store.LOREBOOKS.list_keys() == ()


def test_save_is_refused_if_a_lock_was_set_meanwhile(stage, harbour):
    stage.builds("lore/edit harbour/0", "Mine.")
    store.set_entry_locks("harbour", "0", "edit:perm(Admin)", by=trusted("Ada"))
    assert "may not change" in stage.builds(":w")
    assert content() == "It sails at dusk."


def test_leaving_the_editor_removes_its_attribute(stage, harbour):
    stage.builds("lore/edit harbour/0", ":q")
    names = {attribute.key for attribute in stage.builder.attributes.all()}
    assert not {"edited_text", "_eveditor_saved", "_eveditor_buffer_temp"} & names
    assert not stage.builder.cmdset.has(eveditor.EvEditorCmdSet)


def test_colour_codes_in_the_editor_are_shown_as_text(stage, harbour):
    stage.builds("lore/create harbour/odd = odd: |rred|n {x}")
    assert "|rred|n {x}" in on_screen(stage.sent(stage.builder, "lore/edit harbour/odd"))


@pytest.mark.parametrize("leaving", [[":wq"], [":q", "y"]])
def test_unsaved_text_is_shown_when_the_editor_is_left(stage, harbour, leaving):
    stage.builds("lore/edit harbour/0", "My |rlong|n line.")
    by_tam()
    told = stage.builds(*leaving)
    assert "changed by Tam" in told
    assert told.rstrip().endswith("It sails at dusk.\nMy |rlong|n line.")
