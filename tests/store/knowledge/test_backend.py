"""Test the backend in the game's database, with the tests of all backends and its own."""

import pytest

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import BackendError, BaseInfo, PageDraft, page_name
from evennia_ai.store.knowledge import page_search
from evennia_ai.store.knowledge.backend import DatabaseBackend
from evennia_ai.store.knowledge.knowledge_bases import save_base
from evennia_ai.store.knowledge.pages import remove_page, rename_page
from tests.engine.knowledge.backend_suite import PAGES, BackendSuite, a_draft, at_once


@pytest.fixture(scope="module")
def _harbour(world):
    """The base `harbour` with its pages, for all tests of this file."""
    with world():
        save_base(BaseInfo(key="harbour", name="Harbour"), by=trusted("Mira"))
        for page in PAGES:
            DatabaseBackend("harbour").write(PageDraft(page=page, was="", by=trusted("Mira")))
        yield


@pytest.fixture
def backend(_harbour):
    return DatabaseBackend("harbour")


class TestDatabase(BackendSuite):
    """The tests of all backends, with the database of the tests."""


def names(backend, query):
    return [hit.page.name.full for hit in at_once(backend.search(query))]


def test_changed_page_is_found_only_by_its_new_words(backend):
    pier = backend.write(a_draft("Pier", "pitch"))
    backend.write(a_draft("Pier", "tar", was=pier.revision))

    assert (names(backend, "tar"), names(backend, "pitch")) == (["Pier"], [])


def test_removed_page_is_not_found(backend):
    pier = backend.write(a_draft("Pier", "pitch"))
    remove_page("harbour", pier.name, was=pier.revision, by=trusted("Mira"))

    assert names(backend, "pitch") == []


def test_renamed_page_is_found_by_its_new_and_old_name(backend):
    backend.write(a_draft("Pier", "pitch"))
    rename_page("harbour", page_name("Pier"), page_name("Jetty"), by=trusted("Mira"))

    assert names(backend, "jetty") == names(backend, "pier") == ["Jetty"]


def test_every_page_is_indexed(backend):
    titles = models.KnowledgePosting.objects.filter(field="namespace").values_list("pages")
    assert sum(pages for (pages,) in titles) == len(PAGES)


def test_conflicting_change_of_a_page_is_reported(backend):
    with pytest.raises(BackendError, match="changed by Mira while you edited it"):
        backend.write(a_draft("Ferry", "It sank."))


@pytest.mark.parametrize("method", ["fetch", "search", "linking"])
def test_unknown_knowledge_base_is_reported_by_its_key(backend, method):
    asked = "ferry" if method == "search" else [page_name("Ferry")]

    with pytest.raises(BackendError, match="'castle'"):
        getattr(DatabaseBackend("castle"), method)(asked)


def test_failing_search_is_reported(backend, monkeypatch):
    def refuse(*_, **__):
        raise StoreError("the database is locked")

    monkeypatch.setattr(page_search, "search_pages", refuse)

    with pytest.raises(BackendError, match="locked"):
        backend.search("ferry")
