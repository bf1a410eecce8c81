"""Test that hints of restricted bases reveal nothing of their pages."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, PageMeta, page_name
from evennia_ai.store.knowledge import knowledge_bases
from evennia_ai.store.knowledge.backend import DatabaseBackend, safe_hint_of
from evennia_ai.store.knowledge.pages import save_page

BODY = "The lantern must stand to the left of the barrel before anybody knocks."


@pytest.fixture
def vault(db):
    def hinting(hint: str) -> str:
        info = BaseInfo(key="vault", name="The vault", hint=hint, restricted=True)
        knowledge_bases.save_base(info, by=trusted("builder"))
        return safe_hint_of("vault")

    hinting("")
    for number in range(30):
        written(f"Other {number}", f"The barrel and the lantern of number {number}.")
    written("Drowned Vault", BODY, aliases=("Old Cellar",))
    return hinting


def written(title: str, body: str, **meta) -> None:
    page = Page(name=page_name(title), body=body, meta=PageMeta(**meta))
    save_page("vault", PageDraft(page=page, was="", by=trusted("builder")))


def test_original_hint_is_unchanged(vault):
    assert vault("How one gets on with the keepers.") == "How one gets on with the keepers."


@pytest.mark.req("S0-22")
def test_hint_copied_from_a_page_becomes_empty(vault):
    assert vault(f"Know that {BODY.lower()}") == ""


@pytest.mark.req("S0-24")
def test_titles_and_aliases_are_removed_from_a_hint(vault):
    assert vault("About the Drowned Vault, or the old cellar: who keeps it.") == (
        "About the, or the: who keeps it."
    )


def test_page_written_later_also_changes_the_hint(vault):
    hint = "Ask whoever has the key for a word about the tides here"
    assert vault(hint) == hint
    written("Key", f"{hint}, and knock.")
    assert safe_hint_of("vault") == ""


def test_cached_hint_is_read_without_a_query(vault, no_queries):
    vault("How one gets on with the keepers.")
    with no_queries():
        safe_hint_of("vault")


def test_knowledge_base_that_cannot_be_searched_has_no_hint(vault, monkeypatch):
    def refuse(*args, **fields):
        raise knowledge_bases.no_base("vault")

    monkeypatch.setattr(DatabaseBackend, "search", refuse)
    assert vault("How one gets on.") == ""


def test_hint_of_a_knowledge_base_in_another_backend_loses_its_numbers(vault):
    info = BaseInfo(key="far", name="Far", hint="The 47 keys.", backend="mediawiki")
    knowledge_bases.save_base(replace(info, restricted=True), by=trusted("builder"))
    assert safe_hint_of("far") == "The keys."


def test_unknown_knowledge_base_has_no_hint(db):
    assert safe_hint_of("nowhere") == ""
