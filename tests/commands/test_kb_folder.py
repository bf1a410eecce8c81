"""`kb/import`: folders are listed, planned, and imported whole or not at all."""

import pytest
from django.test import override_settings

from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.store.knowledge import knowledge_bases as bases
from evennia_ai.store.knowledge import pages as store
from tests.commands.knowledge_bases import everything, make_base, page
from tests.commands.stage import one_line


@pytest.fixture
def folder(stage, tmp_path):
    """Create the folder `moor` with two pages, and a folder that must not be imported."""
    inside = tmp_path / "inside"
    (inside / "moor" / "Sources").mkdir(parents=True)
    (inside / "moor" / "base.yaml").write_text("name: The Moor\nsummary: Peat.\n")
    (inside / "moor" / "Fog.md").write_text("---\naliases: [Mist]\n---\nIt is thick.")
    (inside / "moor" / "Sources" / "Song.md").write_text("Row, row.")
    (tmp_path / "outside").mkdir()
    with override_settings(EVENNIA_AI_KNOWLEDGE_FOLDER=str(inside)):
        yield inside / "moor"


def test_folders_are_listed(stage, folder):
    assert "  moor" in stage.builds("kb/import").splitlines()


def test_plan_shows_changes_and_writes_nothing(stage, folder):
    before = everything()
    told = stage.builds("kb/import moor")
    assert "Knowledge base moor, a new one:" in told
    assert "new: 2" in told
    assert "Sources:Song" in told
    assert "kb/import/run moor" in told
    assert everything() == before


def test_folder_is_imported_with_the_fields_of_its_knowledge_base(stage, folder):
    stage.builds("kb/import/run moor")
    assert (bases.base_or_none("moor").name, bases.base_or_none("moor").summary) == (
        "The Moor",
        "Peat.",
    )
    assert page("Mist", base="moor").body == "It is thick."
    (made,) = store.page_revisions("moor", page_name("Fog"))
    assert made.changed_by == "Mara"


def test_the_same_folder_again_changes_nothing(stage, folder):
    stage.builds("kb/import/run moor")
    before = everything()
    assert "The knowledge base has all of this already" in stage.builds("kb/import/run moor")
    assert everything() == before


def test_changed_file_changes_only_its_page(stage, folder):
    stage.builds("kb/import/run moor")
    (folder / "Fog.md").write_text("It is thin.")
    told = stage.builds("kb/import/run moor")
    assert "changed: 1" in told
    assert "unchanged: 1" in told
    assert page("Fog", base="moor").revision == "2"
    assert page("Sources:Song", base="moor").revision == "1"


def test_pages_missing_in_the_folder_stay_and_are_named(stage, folder):
    stage.builds("kb/import/run moor")
    (folder / "Fog.md").unlink()
    assert "kept: 1" in stage.builds("kb/import/run moor")
    assert page("Fog", base="moor") is not None


def test_an_import_never_lifts_a_restriction(stage, folder):
    stage.builds("kb/import/run moor", "kb/restricted moor = on")
    (folder / "base.yaml").write_text("name: The Moor\nrestricted: false\n")
    stage.builds("kb/import/run moor")
    assert bases.base_or_none("moor").restricted


def test_one_wrong_file_stops_the_import(stage, folder):
    (folder / "Bad.md").write_text("---\nrequires: [1]\n---\n")
    (folder / "Worse.md").write_bytes(b"\xff")
    told = stage.builds("kb/import/run moor")
    assert "Bad.md:2: requires must be a list of texts" in told
    assert "Worse.md" in told
    assert bases.base_or_none("moor") is None


def test_folder_is_imported_into_the_named_knowledge_base(stage, folder):
    stage.builds("kb/import/run moor = heath")
    assert page("Fog", base="heath") is not None
    assert bases.base_or_none("moor") is None


def test_import_reads_no_other_folder(stage, folder):
    (folder.parent / "link").symlink_to(folder.parent.parent / "outside")
    before = everything()
    for name in ("../outside", "link", str(folder), "..", "moor/Sources", "nowhere", "a" * 5000):
        for switch in ("import", "import/run"):
            told = one_line(stage.builds(f"kb/{switch} {name}"))
            assert "no folder" in told or "leads out" in told, name
    assert everything() == before


def test_invalid_lock_in_a_file_is_refused(stage, folder):
    (folder / "Fog.md").write_text("---\nlocks: banana\n---\n")
    assert "The lock is refused" in one_line(stage.builds("kb/import/run moor"))
    assert bases.base_or_none("moor") is None


def test_hidden_page_is_not_overwritten(stage, folder):
    stage.builds("kb/import/run moor", "kb/lock moor/Fog = view:perm(Admin)", "yes")
    before = everything()
    told = one_line(stage.builds("kb/import/run moor"))
    assert "pages that you may not see" in told
    assert everything() == before


def test_hidden_knowledge_base_is_not_overwritten(stage, folder):
    make_base("moor", {}, locks="view:perm(Admin)")
    before = everything()
    assert "may not import into 'moor'" in one_line(stage.builds("kb/import/run moor"))
    assert everything() == before


def test_large_import_is_left_to_the_command_line(stage, folder, monkeypatch):
    from evennia_ai.commands.setup.knowledge import incoming

    monkeypatch.setattr(incoming, "MOST_WRITTEN", 1)
    assert "evennia-ai knowledge import" in one_line(stage.builds("kb/import/run moor"))
    assert bases.base_or_none("moor") is None
