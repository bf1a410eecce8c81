"""Test the import of a folder with its base and pages, which is complete or nothing."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, PageConflictError
from evennia_ai.engine.knowledge.pages.files import PageFolder
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageDraft, page_name
from evennia_ai.store.knowledge import knowledge_bases, page_imports, pages

FOG = {"Fog": "It is thick."}


def a_folder(texts=FOG, **said):
    """Return the files of the folder `moor` with this base.yaml."""
    found = tuple(read_page(page_name(title), text) for title, text in texts.items())
    return PageFolder(info=BaseInfo(**{"key": "moor", "name": "moor", **said}), pages=found)


def planned(folder):
    return page_imports.plan_folder(folder, folder_name="moor")


def imported(folder):
    page_imports.import_folder(planned(folder), by=trusted("Mara"))
    return knowledge_bases.get_base("moor")


def test_plan_of_a_folder_writes_nothing():
    wanted = planned(a_folder(summary="Peat."))
    assert wanted.is_new
    assert wanted.fields == ("summary",)
    assert knowledge_bases.list_bases() == ()


def test_new_knowledge_base_has_the_pages_and_settings_of_its_folder():
    made = imported(a_folder(summary="Peat.", keywords=("peat",)))
    assert (made.name, made.summary, made.keywords, made.pages) == ("moor", "Peat.", ("peat",), 1)


def test_folder_sets_the_search_budget_of_its_knowledge_base():
    texts = {"Fog": "---\nhints: [Wait for it.]\n---\nIt is thick."}
    assert imported(a_folder(texts, restricted=True, mediation="hints")).mediation == "hints"
    (page,) = pages.pages_with_field("moor", "hints")
    assert page.meta.fields["hints"] == ["Wait for it."]


def test_settings_missing_in_the_folder_are_kept():
    knowledge_bases.save_base(
        BaseInfo(key="moor", name="The Moor", hint="Wet.", restricted=True), by=trusted("Tam")
    )
    made = imported(a_folder(summary="Peat."))
    assert (made.name, made.hint, made.restricted) == ("The Moor", "Wet.", True)


def test_same_folder_again_changes_nothing():
    before = imported(a_folder(summary="Peat."))
    assert planned(a_folder(summary="Peat.")).changes == 0
    assert imported(a_folder(summary="Peat.")) == before


def test_folder_import_writes_nothing_if_a_page_was_changed_meanwhile():
    imported(a_folder())
    wanted = planned(a_folder({"Fog": "It is thin.", "Bog": "Deep."}, summary="Peat."))
    now = read_page(page_name("Fog"), "It lifts.")
    pages.save_page("moor", PageDraft(page=now, was="1", by=trusted("Tam")))
    before = knowledge_bases.get_base("moor")
    with pytest.raises(PageConflictError, match="Tam"):
        page_imports.import_folder(wanted, by=trusted("Mara"))
    assert knowledge_bases.get_base("moor") == before
    assert pages.page_or_none("moor", page_name("Bog")) is None


@pytest.mark.parametrize(
    "folder",
    [
        a_folder(key="The Moor"),
        a_folder(hint="x" * 5000),
        replace(a_folder(), pages=(replace(a_folder().pages[0], locks="x" * 5000),)),
    ],
    ids=["key", "hint", "locks"],
)
def test_plan_of_a_folder_reports_what_cannot_be_stored(folder):
    with pytest.raises(ComponentValueError):
        planned(folder)
