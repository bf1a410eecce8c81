"""Test that drafts of pages wait until somebody decides, once."""

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ComponentValueError, NotStoredError, StoreError
from evennia_ai.engine.knowledge.pages.page import PageDraft
from evennia_ai.store.knowledge import page_drafts, pages
from evennia_ai.store.knowledge.knowledge_bases import remove_base
from tests.store.knowledge.knowledge_builders import a_base, a_page


@pytest.fixture(autouse=True)
def _harbour():
    a_base()


def a_draft(title="Ferry", *, base="harbour", **fields) -> page_drafts.StoredDraft:
    page = a_page(title, aliases=["Boat"], locks="view:perm(Admin)")
    draft = PageDraft(page=page, was="3", by=trusted("lorekeeper"), note="a note")
    fields = {"task": "write of the ferry", "context_meta": {"pages": [["Quay", "2"]]}} | fields
    return page_drafts.add_draft(base, draft, **fields)


def numbers_waiting(base="") -> list[int]:
    return [one.number for one in page_drafts.waiting_drafts(base)]


def test_draft_is_read_as_it_was_stored():
    kept = a_draft(package="[INSTRUCTIONS]\né")

    assert page_drafts.draft_or_none(kept.number) == kept
    assert (kept.draft.page.meta.aliases, kept.draft.page.locks) == (("Boat",), "view:perm(Admin)")
    assert (kept.draft.was, kept.draft.by.name, kept.draft.note) == ("3", "lorekeeper", "a note")
    assert (kept.task, kept.package) == ("write of the ferry", "[INSTRUCTIONS]\né")
    assert kept.context_meta == {"pages": [["Quay", "2"]]}
    assert (kept.state, kept.decided_by, kept.decided_at) == ("waiting", "", None)


def test_draft_is_not_a_page():
    kept = a_draft()

    assert pages.page_or_none("harbour", kept.draft.page.name) is None


def test_waiting_drafts_are_ordered_and_selected_by_knowledge_base():
    a_base("ash")
    first, second, third = a_draft("Quay"), a_draft("Oar", base="ash"), a_draft("Ferry")

    assert numbers_waiting() == [first.number, second.number, third.number]
    assert numbers_waiting("harbour") == [first.number, third.number]


@pytest.mark.parametrize(("approved", "state"), [(True, "approved"), (False, "refused")])
def test_decided_draft_no_longer_waits_and_is_kept(approved, state):
    number = a_draft().number

    decided = page_drafts.decide_draft(number, approved=approved, by=trusted("Mira"))

    assert (decided.state, decided.decided_by) == (state, "Mira")
    assert decided.decided_at is not None
    assert numbers_waiting() == []
    assert page_drafts.draft_or_none(number) == decided


def test_draft_is_decided_once():
    number = a_draft().number
    page_drafts.decide_draft(number, approved=True, by=trusted("Mira"))

    with pytest.raises(StoreError, match=f"draft {number} was approved by Mira already"):
        page_drafts.decide_draft(number, approved=False, by=trusted("Tam"))
    assert page_drafts.draft_or_none(number).state == "approved"


def test_unknown_draft_does_not_exist():
    assert page_drafts.draft_or_none(99) is None
    with pytest.raises(NotStoredError, match="no draft 99"):
        page_drafts.decide_draft(99, approved=True, by=trusted("Mira"))


def test_draft_for_an_unknown_knowledge_base_is_refused():
    with pytest.raises(NotStoredError, match="no knowledge base 'quay'"):
        a_draft(base="quay")


def test_draft_for_a_wiki_waits_here():
    a_base("wiki", backend="mediawiki")

    assert a_draft(base="wiki").base == "wiki"


def test_waiting_drafts_of_a_knowledge_base_are_limited(monkeypatch):
    monkeypatch.setattr(page_drafts, "MOST_WAITING", 2)
    a_draft()
    a_draft()

    with pytest.raises(StoreError, match="2 drafts of knowledge base 'harbour' wait already"):
        a_draft()
    assert models.KnowledgeDraft.objects.count() == 2


def test_oversized_excerpt_of_a_draft_is_refused(monkeypatch):
    monkeypatch.setattr(page_drafts, "MAX_PACKAGE", 5)

    with pytest.raises(ComponentValueError, match="at most 5 characters"):
        a_draft(package="123456")


def test_drafts_of_a_removed_knowledge_base_are_refused():
    number = a_draft().number
    remove_base("harbour", by=trusted("Tam"))

    decided = page_drafts.draft_or_none(number)
    assert (decided.state, decided.decided_by) == ("refused", "Tam")
