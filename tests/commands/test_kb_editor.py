"""Changing pages with `kb`: the line editor, conflicts, revisions, renaming, removing."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge import pages as store
from tests.commands.knowledge_bases import everything, make_base, page, write
from tests.commands.stage import one_line


@pytest.fixture(scope="module")
def harbour(beforehand):
    """Store a base with six pages."""
    return beforehand(lambda stage: make_base())


def after_reload(stage):
    """Forget what a reload forgets, and let the builder type more lines."""
    stage.builder.ndb._eveditor = None


def test_the_editor_opens_with_the_text_and_saves_what_was_typed(stage, harbour):
    assert "Oren rows" in stage.builds("kb/edit harbour/Oren")
    told = stage.builds("Never in fog.", ":w", ":q")
    assert "Saved harbour/Oren as revision 2." in told
    assert page("Oren").body == "Oren rows the [[The Ferry|ferry]].\nNever in fog."


def test_metadata_is_edited_in_front_of_the_text(stage, harbour):
    stage.builds("kb/edit harbour/Oren", ":DD", "---", "tags: [crew]", "---", "Oren rows.", ":wq")
    assert page("Oren").meta.tags == ("crew",)
    assert page("Oren").body.strip() == "Oren rows."


def test_saving_creates_a_missing_page(stage, harbour):
    assert "is new" in stage.builds("kb/edit harbour/Sources:The Song")
    assert page("Sources:The Song") is None
    stage.builds("Row, row.", ":wq")
    assert page("Sources:The Song").body == "Row, row."


def test_editor_stores_nothing_without_saving(stage, harbour):
    stage.builds("kb/edit harbour/Fog", "It is thick.", ":q!")
    assert page("Fog") is None


def test_saving_over_another_builders_change_is_refused(stage, harbour):
    stage.builds("kb/edit harbour/Oren", "And mine.")
    write("Oren", "Tam was here.", was="1")
    told = stage.builds(":w")
    assert "Not saved" in told
    assert "changed by Tam" in told
    assert page("Oren").body == "Tam was here."
    assert "And mine." in stage.builds(":q!")


def test_second_creation_of_a_page_is_refused(stage, harbour):
    stage.builds("kb/edit harbour/Fog", "Mine.")
    write("Fog", "Tam's.")
    assert "Not saved" in stage.builds(":w")
    assert page("Fog").body == "Tam's."


def test_lore_editor_saves_twice_without_a_conflict(stage, harbour):
    told = stage.builds("kb/edit harbour/Oren", "One.", ":w", "Two.", ":wq")
    assert "Not saved" not in told
    assert page("Oren").body.endswith("One.\nTwo.")


def test_the_editor_survives_a_reload_and_saves(stage, harbour):
    stage.builds("kb/edit harbour/Oren", "Before the reload.")
    after_reload(stage)
    stage.builds("After it.", ":wq")
    assert page("Oren").body.endswith("Before the reload.\nAfter it.")


def test_unreadable_metadata_is_refused_with_its_line(stage, harbour):
    told = stage.builds(
        "kb/edit harbour/Oren", ":DD", "---", "requires: [1]", "---", "Mine.", ":wq"
    )
    assert "Not saved: line 2: requires must be a list of texts" in told
    assert "Mine." in told.partition("was not saved")[2]
    assert page("Oren").revision == "1"


def test_invalid_lock_in_the_metadata_is_refused(stage, harbour):
    told = stage.builds("kb/edit harbour/Fog", "---", "locks: banana", "---", "Thick.", ":wq")
    assert "Not saved: The lock is refused" in told
    assert page("Fog") is None


def test_save_is_refused_if_the_page_was_hidden_meanwhile(stage, harbour):
    stage.builds("kb/edit harbour/Oren", "Mine.")
    write("Oren", "---\nlocks: view:perm(Admin)\n---\nSecret.", was="1")
    told = stage.builds(":w")
    assert "hidden from you" in told
    assert "Secret" not in told


def test_pages_of_another_backend_cannot_be_edited(stage, harbour):
    stage.builds("kb/create manual", "kb/set manual/backend = help")
    before = everything()
    told = one_line(stage.builds("kb/edit manual/Fog"))
    assert "not in the game's database" in told
    assert everything() == before


def test_revisions_are_listed_and_a_page_is_reverted_to_one(stage, harbour):
    write("Oren", "Oren is gone.", was="1")
    listed = stage.builds("kb/revisions harbour/Oren")
    assert "created by Tam" in listed
    assert "updated by Tam" in listed
    assert "+ Oren is gone." in stage.builds("kb/revisions harbour/Oren = 2").splitlines()
    told = stage.builds("kb/revert harbour/Oren = 1", "yes")
    assert "- Oren is gone." in told.splitlines()
    assert "this is revision 3" in told
    assert page("Oren").body.startswith("Oren rows")


def test_revert_to_the_present_text_changes_nothing(stage, harbour):
    before = everything()
    assert "the same as at revision 1" in one_line(stage.builds("kb/revert harbour/Oren = 1"))
    assert everything() == before


def test_removed_page_comes_back_by_the_shown_command(stage, harbour):
    told = one_line(stage.builds("kb/remove harbour/Oren"))
    assert page("Oren") is None
    stage.builds(told.partition("; ")[2].partition(" brings")[0], "yes")
    assert page("Oren").body.startswith("Oren rows")


def test_locked_removed_page_cannot_be_reverted_by_others(stage, harbour):
    write("Oren", "---\nlocks: view:perm(Admin)\n---\nSecret.", was="1")
    store.remove_page("harbour", page("Oren").name, was="2", by=trusted("Tam"))
    for number in (1, 2):
        assert "no text of" in one_line(stage.builds(f"kb/revert harbour/Oren = {number}"))
    assert page("Oren") is None


def test_recreated_knowledge_base_keeps_old_hidden_pages_hidden(stage, harbour):
    knowledge_bases.save_base(replace(harbour, locks="view:perm(Admin)"), by=trusted("Tam"))
    knowledge_bases.remove_base("harbour", by=trusted("Tam"))
    stage.builds("kb/create harbour")
    for typed in ("kb harbour/Oren/1", "kb/revert harbour/Oren = 1"):
        assert "no text of harbour/Oren" in one_line(stage.builds(typed))
    assert "no revisions" in one_line(stage.builds("kb/revisions harbour/Oren"))


def test_a_renamed_page_leaves_a_redirect(stage, harbour):
    stage.builds("kb/rename harbour/Oren = Oren Vale")
    assert page("Oren Vale").body.startswith("Oren rows")
    assert page("Oren").meta.redirect.full == "Oren Vale"
    assert "harbour/Oren Vale" in stage.builds("kb harbour/Oren")


def test_a_page_keeps_its_namespace_when_it_is_renamed(stage, harbour):
    stage.builds("kb/rename harbour/Sources:Ledger = The Old Ledger")
    assert page("Sources:The Old Ledger").body == "Two coppers a head."


def test_page_lock_is_set_shown_and_removed(stage, harbour):
    stage.builds("kb/lock harbour/Oren = search:perm(Admin)")
    assert page("Oren").locks == "search:perm(Admin)"
    assert "search:perm(Admin)" in one_line(stage.builds("kb/lock harbour/Oren"))
    stage.builds("kb/lock harbour/Oren = off")
    assert page("Oren").locks == ""
    assert [one.note for one in store.page_revisions("harbour", page("Oren").name)][1:] == [
        "lock"
    ] * 2
