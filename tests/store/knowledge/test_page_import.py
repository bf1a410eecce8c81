"""Test imports of pages: repeatable, and complete or nothing."""

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, NotStoredError, PageConflictError
from evennia_ai.engine.knowledge.pages.page import page_name
from evennia_ai.store.knowledge import pages
from evennia_ai.store.knowledge.knowledge_bases import base_or_none
from evennia_ai.store.knowledge.page_imports import import_pages, plan_pages
from tests.store.knowledge.knowledge_builders import a_base, a_page, a_saved_page

FERRY = page_name("Ferry")


@pytest.fixture(autouse=True)
def _harbour():
    a_base()


def imported(*given, **options):
    return import_pages(plan_pages("harbour", given), by=trusted("Mira"), **options)


def titles() -> list[str]:
    return [name.title for name in pages.list_pages("harbour", "Main")]


def numbers(title: str) -> list[int]:
    return [one.number for one in pages.page_revisions("harbour", page_name(title))]


def told(done) -> list[list[str]]:
    return [
        [page.name.title for page in done.new],
        [page.name.title for page in done.changed],
        [name.title for name in done.same],
        [name.title for name in done.gone],
    ]


def test_plan_of_an_import_lists_changes_and_writes_nothing():
    a_saved_page("Ferry", "old")
    a_saved_page("Oar")
    a_saved_page("Quay")

    done = plan_pages("harbour", [a_page("Ferry", "new"), a_page("Ash"), a_page("Quay")])

    assert told(done) == [["Ash"], ["Ferry"], ["Quay"], ["Oar"]]
    assert titles() == ["Ferry", "Oar", "Quay"]


def test_import_writes_new_and_changed_pages():
    a_saved_page("Ferry", "old")

    imported(a_page("ferry", "[[Ash]]"), a_page("Ash", aliases=["Tree"]))

    assert titles() == ["Ash", "Ferry"]
    assert pages.page_or_none("harbour", FERRY).body == "[[Ash]]"
    assert pages.page_or_none("harbour", page_name("Tree")).name.title == "Ash"
    assert pages.pages_linking_to("harbour", page_name("Ash")) == (FERRY,)
    assert (base_or_none("harbour").pages, base_or_none("harbour").characters) == (2, 7 + 19)


def test_repeated_import_changes_nothing():
    given = [a_page("Ferry", summary="s"), a_page("Sources:Ledger", locks="view:all()")]
    imported(*given)
    before = base_or_none("harbour")

    again = imported(*given)

    assert told(again) == [[], [], ["Ferry", "Ledger"], []]
    assert base_or_none("harbour") == before
    assert numbers("Ferry") == [1]


def test_pages_missing_in_an_import_stay_unless_removal_is_requested():
    a_saved_page("Oar")
    imported(a_page("Ferry"))
    assert titles() == ["Ferry", "Oar"]

    imported(a_page("Ferry"), remove=True)
    assert titles() == ["Ferry"]
    assert numbers("Oar") == [1, 2]
    assert base_or_none("harbour").pages == 1


def test_reimported_page_continues_its_revisions():
    imported(a_page("Ferry"))
    imported(remove=True)
    imported(a_page("Ferry"))

    assert numbers("Ferry") == [1, 2, 3]


def test_page_changed_meanwhile_stops_the_whole_import():
    a_saved_page("Ferry", "old")
    planned = plan_pages("harbour", [a_page("Ash"), a_page("Ferry", "imported")])
    a_saved_page("Ferry", "by hand")

    with pytest.raises(PageConflictError, match="page 'Ferry' of knowledge base 'harbour'"):
        import_pages(planned, by=trusted("Tam"))
    assert titles() == ["Ferry"]
    assert pages.page_or_none("harbour", FERRY).body == "by hand"


def test_page_created_meanwhile_is_not_overwritten():
    planned = plan_pages("harbour", [a_page("Ferry", "imported")])
    a_saved_page("Ferry", "by hand")

    with pytest.raises(PageConflictError):
        import_pages(planned, by=trusted("Tam"))


def test_page_changed_meanwhile_is_not_removed():
    a_saved_page("Oar", "old")
    planned = plan_pages("harbour", [a_page("Ferry")])
    a_saved_page("Oar", "by hand")

    with pytest.raises(PageConflictError):
        import_pages(planned, by=trusted("Tam"), remove=True)
    assert titles() == ["Oar"]


def test_unstorable_page_stops_the_whole_import():
    with pytest.raises(ComponentValueError, match="at most 400000"):
        imported(a_page("Ash"), a_page("Ferry", "x" * 400_001))
    assert titles() == []


def test_page_listed_twice_is_refused():
    with pytest.raises(ComponentValueError, match="only once"):
        plan_pages("harbour", [a_page("Ferry"), a_page("ferry", "other")])


def test_import_into_an_unknown_knowledge_base_is_an_error():
    with pytest.raises(NotStoredError, match="no knowledge base 'quay'"):
        plan_pages("quay", [a_page()])


def test_import_reports_its_progress(monkeypatch):
    monkeypatch.setattr(pages, "BATCH", 2)
    a_saved_page("Oar")
    seen = []

    imported(
        *(a_page(title) for title in "ABC"),
        remove=True,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert seen == [(2, 4), (3, 4), (4, 4)]


def test_import_of_many_pages_is_complete():
    many = [a_page(f"Page {number}", f"[[Page {number + 1}]]") for number in range(700)]
    imported(*many)

    assert len(titles()) == 700
    assert told(plan_pages("harbour", many))[2] == [page.name.title for page in many]
