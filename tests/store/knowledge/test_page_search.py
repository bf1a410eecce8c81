"""Test the search of pages in the database of the tests."""

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, PageMeta, page_name
from evennia_ai.engine.knowledge.postings import SPAN_PAGES
from evennia_ai.store.knowledge import page_search, pages
from evennia_ai.store.knowledge.knowledge_bases import remove_base, save_base


def a_base(key="harbour"):
    save_base(BaseInfo(key=key, name=key), by=trusted("Mira"))
    return key


@pytest.fixture
def harbour():
    return a_base()


def write(base, name: str, body: str = "", **meta) -> Page:
    """Write a page, new or in place of an earlier one."""
    name = page_name(name)
    there = pages.page_or_none(base, name)
    page = Page(name=name, body=body, meta=PageMeta(**meta))
    return pages.save_page(
        base, PageDraft(page=page, was=there.revision if there else "", by=trusted("Mira"))
    )


def found(query: str, **options) -> list[str]:
    return [name.full for name, _ in page_search.search_pages("harbour", query, **options).names]


def test_page_is_found_by_a_word_of_its_text(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Lighthouse", "It burns at night.")

    assert found("DAWN") == ["Ferry"]


def test_page_is_found_by_its_alias(harbour):
    write(harbour, "Ferry", "It crosses.", aliases=("The Grey Goose",))

    assert found("goose") == ["Ferry"]


def test_changed_page_is_found_only_by_its_new_words(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Ferry", "It crosses at noon.")

    assert found("noon") == ["Ferry"]
    assert found("dawn") == []


def test_removed_page_is_no_longer_found(harbour):
    page = write(harbour, "Ferry", "at dawn")
    pages.remove_page(harbour, page.name, was=page.revision, by=trusted("Mira"))

    assert found("dawn") == []
    assert not models.KnowledgePosting.objects.exists()


def test_search_finds_all_other_pages_when_a_page_was_deleted_without_its_index(harbour):
    write(harbour, "Ferry", "at dawn")
    write(harbour, "Lighthouse", "at dawn")
    models.KnowledgePage.objects.filter(title="Ferry").delete()

    assert found("dawn") == ["Lighthouse"]


def test_removed_knowledge_base_leaves_no_postings(harbour):
    write(harbour, "Ferry", "at dawn")
    remove_base(harbour, by=trusted("Mira"))

    assert not models.KnowledgePosting.objects.exists()


def test_rolled_back_page_is_not_found(harbour):
    with transaction.atomic():
        write(harbour, "Ferry", "at dawn")
        transaction.set_rollback(True)

    assert found("dawn") == []


def test_pages_of_another_knowledge_base_are_not_found(harbour):
    write(a_base("castle"), "Moat", "deep")
    write(harbour, "Sea", "deep")

    assert found("deep") == ["Sea"]


def test_only_the_requested_namespaces_are_searched(harbour):
    for name in ("Ferry", "Sources:Ledger", "Talk:Ferry"):
        write(harbour, name, "a toll of two coins")

    assert found("toll", namespaces=["Sources"]) == ["Sources:Ledger"]
    assert found("toll", namespaces=["Main", "Talk"]) == ["Talk:Ferry", "Ferry"][::-1]


def test_equally_good_pages_are_sorted_by_title(harbour):
    for name in ("Crypt", "Abbey", "Bight"):
        write(harbour, name, "a reef")

    assert found("reef") == ["Abbey", "Bight", "Crypt"]


def test_search_returns_at_most_the_requested_number(harbour):
    for number in range(30):
        write(harbour, f"Reef {number:02}", "coral")

    assert found("coral", limit=4) == ["Reef 00", "Reef 01", "Reef 02", "Reef 03"]


def test_page_with_all_words_is_ranked_before_pages_with_one(harbour):
    write(harbour, "A", "the bell of the tower")
    write(harbour, "B", "the bell of bronze")
    write(harbour, "C", "a bronze coin")

    assert found("bronze bell")[0] == "B"
    assert {*found("bronze bell")} == {"A", "B", "C"}


def test_common_words_of_a_question_do_not_hide_the_answer(harbour):
    for number in range(40):
        write(harbour, f"Page {number}", "what does the man do at the sea and who is he")
    write(harbour, "Lighthouse", "Oren keeps its lamp.")

    assert found("who is it that keeps the lamp at sea?", limit=3)[0] == "Lighthouse"


def test_word_that_no_page_has_does_not_hide_the_others(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")

    assert found("dawn zyzzyva") == ["Ferry"]


def test_scripts_without_spaces_are_found_by_parts_of_words(harbour):
    write(harbour, "渡口", "清晨的渡船从港口出发")
    write(harbour, "灯塔", "灯塔在夜里发光")

    assert found("渡船什么时候出发") == ["渡口"]


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '"dawn',
        "dawn*",
        "title:dawn",
        "NEAR(dawn)",
        "dawn\0",
        "dawn' & 'x",
        "^dawn",
        "(dawn",
        "dawn\\",
        "{dawn}",
        "-dawn",
        "dawn:*A",
        "dawn\ud800",
        "dawn and or not near",
        "dawn " + " ".join(f"word{n}" for n in range(10_000)),
    ],
    ids=lambda query: query[:12].encode("unicode_escape").decode(),
)
def test_operators_of_query_languages_have_no_effect(harbour, query):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Near", "title")

    assert "Ferry" in found(query) or query == '"'


def test_keywords_of_query_languages_are_ordinary_words(harbour):
    write(harbour, "Ferry", "near or far, and not yet")
    write(harbour, "Rope", "hemp")

    assert found("NEAR AND NOT OR") == ["Ferry"]


def test_rarest_words_decide_when_no_page_has_all(harbour):
    write(harbour, "Kraken", "a beast of the deep")
    for number in range(20):
        write(harbour, f"Page {number}", "the sea the ship the rope the tide")

    assert found("sea ship rope tide kraken", limit=2)[0] == "Kraken"


@pytest.mark.req("S0-44")
def test_rarity_in_another_knowledge_base_has_no_effect(harbour):
    write(harbour, "A", "coral atoll")
    write(harbour, "B", "coral")
    before = page_search.search_pages(harbour, "coral atoll")
    for number in range(9):
        write(a_base("castle"), f"Moat {number}", "atoll")

    assert page_search.search_pages(harbour, "coral atoll") == before


def test_pages_of_two_spans_are_ranked_together(harbour):
    write(harbour, "A", "coral and sand")
    first = models.KnowledgePage.objects.get()
    models.KnowledgePage.objects.create(
        pk=first.pk + SPAN_PAGES,
        base=first.base,
        namespace="Main",
        title="B",
        folded="b",
        body="coral",
    )
    far = Page(name=page_name("B"), body="coral coral")
    change = page_search.PageChange(page_id=first.pk + SPAN_PAGES, was=None, now=far)
    with transaction.atomic():
        page_search.index_changes(first.base_id, [change])

    assert found("coral") == ["B", "A"]
    assert found("coral", limit=1) == ["B"]


@pytest.mark.parametrize("pages_there", [3, 30])
def test_search_makes_two_queries_however_many_pages_match(harbour, pages_there):
    for number in range(pages_there):
        write(harbour, f"Reef {number:02}", "coral atoll")
    found("coral")

    with CaptureQueriesContext(connection) as asked:
        found("coral atoll")

    assert len(asked) == 2


def test_edit_writes_only_the_changed_words(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Ferry", "It crosses at noon.")

    with CaptureQueriesContext(connection) as asked:
        write(harbour, "Ferry", "It crosses at dusk.")

    told = " ".join(one["sql"] for one in asked if "evennia_ai_knowledgeposting" in one["sql"])
    assert "dusk" in told
    assert "noon" in told
    assert "cross" not in told


def test_pages_of_an_older_version_are_found_after_migration(harbour):
    write(harbour, "Ferry", "at dawn")
    write(a_base("castle"), "Moat", "at dawn")
    stored = list(models.KnowledgePosting.objects.order_by("word", "field", "base").values())
    models.KnowledgePosting.objects.all().delete()
    models.KnowledgeBase.objects.update(indexed_for="")

    call_command("migrate", verbosity=0)

    again = list(models.KnowledgePosting.objects.order_by("word", "field", "base").values())
    assert len(again) == len(stored) > 0
    assert found("dawn") == ["Ferry"]


@pytest.mark.req("S0-44")
def test_pages_are_found_in_an_added_language_after_migration(harbour, settings_of_ai):
    write(harbour, "Moor", "Drei H\u00e4user stehen dort.")
    assert found("Haus") == []

    settings_of_ai(KNOWLEDGE_LANGUAGES=["de"])
    assert found("Haus") == []

    call_command("migrate", verbosity=0)
    assert found("Haus") == ["Moor"]
    assert found("H\u00e4usern") == ["Moor"]


def test_index_for_the_current_languages_is_not_rebuilt(harbour):
    write(harbour, "Ferry", "at dawn")

    with CaptureQueriesContext(connection) as asked:
        call_command("migrate", verbosity=0)

    assert not [one for one in asked if "evennia_ai_knowledgeposting" in one["sql"]]


def test_failing_search_names_the_knowledge_base(harbour, monkeypatch):
    def refuse(*_):
        raise DatabaseError("disk I/O error")

    monkeypatch.setattr(page_search, "_postings", refuse)

    with pytest.raises(StoreError, match="'harbour' cannot be searched: disk I/O error"):
        found("dawn")
