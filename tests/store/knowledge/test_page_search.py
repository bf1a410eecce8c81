"""Searching pages in the database of the tests."""

from dataclasses import replace

import pytest
from django.db import DatabaseError, connection, transaction

from evennia_ai import models
from evennia_ai.errors import StoreError
from evennia_ai.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.migrations import _page_search
from evennia_ai.store.knowledge import page_search


def a_base(key="harbour"):
    return models.KnowledgeBase.objects.create(key=key, name=key, changed_by="Mira", changed_at=1.0)


@pytest.fixture
def harbour():
    return a_base()


def write(base, name: str, body: str = "", **meta) -> models.KnowledgePage:
    """Write a page and the words it is found by."""
    page = Page(name=page_name(name), body=body, meta=PageMeta(**meta))
    row, _ = models.KnowledgePage.objects.update_or_create(
        base=base,
        namespace=page.name.namespace,
        folded=page.name.folded,
        defaults={"title": page.name.title, "body": body, "sha256": page.sha256},
    )
    page_search.index([(row.pk, page)])
    return row


def found(query: str, **options) -> list[str]:
    return [name.full for name, _ in page_search.found("harbour", query, **options).names]


def test_a_page_is_found_by_a_word_of_its_text(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Lighthouse", "It burns at night.")

    assert found("DAWN") == ["Ferry"]


def test_a_page_is_found_by_its_alias(harbour):
    write(harbour, "Ferry", "It crosses.", aliases=("The Grey Goose",))

    assert found("goose") == ["Ferry"]


def test_a_changed_page_is_found_by_its_new_words_alone(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Ferry", "It crosses at noon.")

    assert found("noon") == ["Ferry"]
    assert found("dawn") == []


def test_a_removed_page_is_found_no_more(harbour):
    write(harbour, "Ferry", "at dawn")
    models.KnowledgePage.objects.all().delete()

    assert found("dawn") == []


def test_a_removed_base_leaves_no_words(harbour):
    write(harbour, "Ferry", "at dawn")
    harbour.delete()

    assert found("dawn") == []
    assert not models.KnowledgePageWords.objects.exists()


def test_what_was_rolled_back_is_not_found(harbour):
    with transaction.atomic():
        write(harbour, "Ferry", "at dawn")
        transaction.set_rollback(True)

    assert found("dawn") == []


def test_pages_of_another_base_are_not_found(harbour):
    write(a_base("castle"), "Moat", "deep")
    write(harbour, "Sea", "deep")

    assert found("deep") == ["Sea"]


def test_only_the_namespaces_that_are_asked_are_searched(harbour):
    for name in ("Ferry", "Sources:Ledger", "Talk:Ferry"):
        write(harbour, name, "a toll of two coins")

    assert found("toll", namespaces=["Sources"]) == ["Sources:Ledger"]
    assert found("toll", namespaces=["Main", "Talk"]) == ["Talk:Ferry", "Ferry"][::-1]


def test_pages_that_fit_alike_come_in_the_order_of_their_titles(harbour):
    for name in ("Crypt", "Abbey", "Bight"):
        write(harbour, name, "a reef")

    assert found("reef") == ["Abbey", "Bight", "Crypt"]


def test_no_more_are_found_than_asked(harbour):
    for number in range(30):
        write(harbour, f"Reef {number:02}", "coral")

    assert found("coral", limit=4) == ["Reef 00", "Reef 01", "Reef 02", "Reef 03"]


def test_a_page_with_all_words_comes_before_pages_with_one(harbour):
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


def test_a_word_that_no_page_has_does_not_hide_the_others(harbour):
    write(harbour, "Ferry", "It crosses at dawn.")

    assert found("dawn zyzzyva") == ["Ferry"]


def test_scripts_without_blanks_are_found_by_parts_of_their_runs(harbour):
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
def test_marks_of_query_languages_are_no_queries(harbour, query):
    write(harbour, "Ferry", "It crosses at dawn.")
    write(harbour, "Near", "title")

    assert "Ferry" in found(query) or query == '"'


def test_words_of_query_languages_are_words(harbour):
    write(harbour, "Ferry", "near or far, and not yet")
    write(harbour, "Rope", "hemp")

    assert found("NEAR AND NOT OR") == ["Ferry"]


def test_the_rarest_words_are_looked_for_where_no_page_has_all(harbour):
    write(harbour, "Kraken", "a beast of the deep")
    for number in range(20):
        write(harbour, f"Page {number}", "the sea the ship the rope the tide")

    assert found("sea ship rope tide kraken", limit=2)[0] == "Kraken"


@pytest.mark.parametrize(("most", "pages"), [(3, 1), (5, 4)])
def test_words_that_are_too_common_bring_no_page_that_has_not_all(
    harbour, monkeypatch, most, pages
):
    monkeypatch.setattr(page_search, "TOO_COMMON", most)
    for number in range(4):
        write(harbour, f"Reef {number}", "coral" if number else "coral atoll")

    assert found("coral atoll")[0] == "Reef 0"
    assert len(found("coral atoll")) == pages


def test_where_all_words_are_too_common_the_rarest_brings_pages(harbour, monkeypatch):
    monkeypatch.setattr(page_search, "TOO_COMMON", 1)
    for number in range(5):
        write(harbour, f"Reef {number}", "atoll" if number < 2 else "coral")

    assert found("coral atoll") == ["Reef 0", "Reef 1"]


class TestCommonWords:
    """A word that many pages have is not counted with every search."""

    @pytest.fixture(autouse=True)
    def _counted(self, harbour, monkeypatch):
        monkeypatch.setattr(page_search, "TOO_COMMON", 1)
        monkeypatch.setattr(page_search, "_common", {})
        self.base, self.asked = harbour, []
        database = page_search.DATABASES[connection.vendor]
        counting = replace(
            database, counts=lambda words: self.asked.append(words) or database.counts(words)
        )
        monkeypatch.setitem(page_search.DATABASES, connection.vendor, counting)
        for number in range(3):
            write(harbour, f"Reef {number}", "coral atoll" if number == 1 else "coral")
        self.stored(10)

    def stored(self, pages):
        models.KnowledgeBase.objects.update(page_count=pages)

    def test_it_is_counted_once_and_a_rare_one_each_time(self):
        first, second = found("coral atoll"), found("coral atoll")

        assert first == second
        assert self.asked == [["coral", "atoll"], ["atoll"]]

    def test_it_is_counted_again_when_there_are_many_more_pages(self):
        found("coral")
        self.stored(12)
        found("coral")

        assert self.asked == [["coral"], ["coral"]]


def test_another_kind_of_database_says_that_it_cannot_search(harbour, monkeypatch):
    monkeypatch.setattr(page_search, "DATABASES", {})

    with pytest.raises(StoreError, match="SQLite and PostgreSQL"):
        found("dawn")


def test_a_search_that_fails_says_where(harbour):
    _page_search.take_away(None, connection.SchemaEditorClass(connection))

    with pytest.raises(StoreError, match="'harbour' cannot be searched"), transaction.atomic():
        found("dawn")


def test_the_index_can_be_taken_away_and_made_again_from_the_words(harbour):
    editor = connection.SchemaEditorClass(connection)
    write(harbour, "Ferry", "at dawn")
    connection.check_constraints()  # PostgreSQL alters no table with rows it is to check yet

    _page_search.take_away(None, editor)
    _page_search.make(None, editor)

    assert found("dawn") == ["Ferry"]


def test_an_sqlite_without_full_text_search_says_what_to_do(monkeypatch):
    def refuse(statement, params=None):
        raise DatabaseError("no such module: fts5")

    editor = connection.SchemaEditorClass(connection)
    monkeypatch.setattr(editor, "execute", refuse)

    with pytest.raises(DatabaseError, match="built without FTS5"):
        _page_search.make(None, editor)
