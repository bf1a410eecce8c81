"""Tests that every backend of a knowledge base must pass, wherever it keeps its pages.

A subclass has a fixture `backend`. This backend contains the `PAGES`, and possibly pages that other
tests here have written. A subclass whose backend answers later also overrides the fixture `told`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import (
    Backend,
    BackendError,
    Page,
    PageDraft,
    PageMeta,
    page_name,
)
from evennia_ai.engine.knowledge.relevance import MAX_CHUNK_CHARACTERS

Told = Callable[[Any], Any]


def a_page(title: str, body: str, **meta: Any) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


PAGES = (
    a_page(
        "Ferry",
        "It crosses at dawn. [[Lighthouse]] shows the way; [[Harbour Master|the master]] takes "
        "the toll, and [[Drowned Bell]] is heard in fog.",
        summary="A flat boat.",
        topics=("trade",),
        aliases=("The Grey Goose",),
        tags=("boat",),
        requires=(page_name("Lighthouse"),),
        fields={"type": "place"},
    ),
    a_page("Lighthouse", "Oren keeps its lamp. It burns whale oil."),
    a_page("Harbour Master", "She writes each ship that pays a toll into [[Sources:Ledger]]."),
    a_page("Old Ferry", "", redirect=page_name("Ferry")),
    a_page("Smuggler's Cave", "Below the lamp, dry at ebb. Brandy is kept there."),
    a_page("渡口", "清晨的渡船从港口出发。"),
    a_page(
        "Chronicle",
        "\n\n".join(
            [
                *(
                    f"In year {year} the nets were full and nobody complained."
                    for year in range(90)
                ),
                "Then the kraken came and took the bell of bronze.",
                *(f"In year {year} the roofs were mended with reed." for year in range(90, 150)),
            ]
        ),
    ),
    a_page("Sources:Ledger", "Two coins of toll for each cart."),
    a_page("Talk:Ferry", "Is the toll two coins, or three?"),
    a_page("Instructions:Create/Source", "Write it as its author would."),
    a_page("Instructions:Create/Person", "Begin with what others say."),
    a_page("Instructions:Style", "Short sentences."),
)


def at_once(answer: Any) -> Any:
    """Return the answer of a backend that answers at once."""
    return answer


class BackendSuite:
    """Tests of a backend. Each test is one behaviour."""

    @pytest.fixture
    def told(self) -> Told:
        """A function that waits for an answer and returns it, or raises its error."""
        return at_once

    @pytest.fixture
    def fetched(self, backend: Backend, told: Told) -> Callable[..., list[Page | None]]:
        return lambda *titles: list(told(backend.fetch([page_name(one) for one in titles])))

    @pytest.fixture
    def found(self, backend: Backend, told: Told) -> Callable[..., list[str]]:
        def found(query: str, **options: Any) -> list[str]:
            return [hit.page.name.full for hit in told(backend.search(query, **options))]

        return found

    # Fetching

    def test_page_is_fetched_as_it_was_written(self, fetched):
        (page,) = fetched("Ferry")

        assert (page.name, page.body, page.meta) == (PAGES[0].name, PAGES[0].body, PAGES[0].meta)
        assert page.base == "harbour"
        assert page.revision

    def test_pages_are_fetched_in_the_order_of_the_names(self, fetched):
        pages = fetched("Sources:Ledger", "Nowhere", "Ferry", "Sources:Ledger")

        names = [page and page.name.full for page in pages]
        assert names == ["Sources:Ledger", None, "Ferry", "Sources:Ledger"]

    def test_page_is_found_in_any_letter_case_of_its_title(self, fetched):
        assert [page.name.full for page in fetched("hARBOUR mASTER", "lighthouse")] == [
            "Harbour Master",
            "Lighthouse",
        ]

    def test_an_alias_leads_to_its_page(self, fetched):
        assert [page.name.full for page in fetched("The Grey Goose", "the grey goose")] == [
            "Ferry",
            "Ferry",
        ]

    def test_a_redirect_leads_to_its_page(self, fetched):
        assert [page.name.full for page in fetched("Old Ferry")] == ["Ferry"]

    def test_a_name_in_another_namespace_is_another_page(self, fetched):
        main, talk = fetched("Ferry", "Talk:Ferry")

        assert main.body != talk.body

    def test_fetched_page_has_its_links(self, fetched):
        (page,) = fetched("Ferry")

        assert [name.full for name in page.links] == [
            "Lighthouse",
            "Harbour Master",
            "Drowned Bell",
        ]

    def test_fetch_without_names_is_empty(self, fetched):
        assert fetched() == []

    # Searching

    def test_a_page_is_found_by_a_word_of_its_text_in_any_case(self, found):
        assert found("BRANDY") == ["Smuggler's Cave"]

    def test_a_page_whose_title_has_the_word_comes_first(self, found):
        names = found("lighthouse")

        assert names[0] == "Lighthouse"
        assert "Ferry" in names

    def test_page_with_more_words_scores_higher(self, found):
        names = found("lamp brandy")

        assert names[:2] == ["Smuggler's Cave", "Lighthouse"]

    def test_a_page_is_found_by_its_alias(self, found):
        assert found("grey goose")[0] == "Ferry"

    def test_question_finds_the_page_on_its_subject(self, found):
        assert found("Who keeps the lamp of the lighthouse?", limit=3)[0] == "Lighthouse"

    def test_only_the_given_namespaces_are_searched(self, found):
        assert found("toll", namespaces=["Sources"]) == ["Sources:Ledger"]
        assert {*found("toll", namespaces=["Sources", "Talk"])} == {"Sources:Ledger", "Talk:Ferry"}
        assert {*found("toll")} >= {"Ferry", "Harbour Master", "Sources:Ledger", "Talk:Ferry"}

    def test_search_returns_at_most_the_limit(self, found):
        assert len(found("toll", limit=2)) == 2
        assert found("toll", limit=2) == found("toll")[:2]

    def test_equal_queries_give_equal_hits(self, found):
        assert found("toll at dawn") == found("toll at dawn")

    def test_page_is_found_once_when_a_redirect_matches_too(self, found):
        names = found("old ferry")

        assert names[0] == "Ferry"
        assert names.count("Ferry") == 1
        assert "Old Ferry" not in names

    def test_word_in_a_script_without_blanks_is_found(self, found):
        assert found("渡船") == ["渡口"]

    def test_unknown_word_does_not_hide_other_hits(self, found):
        assert "Smuggler's Cave" in found("brandy zyzzyva")

    @pytest.mark.parametrize("query", ["", "…", '"', "*:(", "zyzzyva"])
    def test_search_for_unknown_words_is_empty(self, found, query):
        assert found(query) == []

    @pytest.mark.parametrize(
        "query",
        [
            '"brandy',
            "brandy*",
            "title:brandy",
            "NEAR(brandy",
            "brandy\0",
            "brandy' | 'x",
            "-brandy",
        ],
    )
    def test_query_syntax_of_databases_is_plain_text(self, found, query):
        assert "Smuggler's Cave" in found(query)

    def test_very_long_query_uses_its_first_words(self, found):
        assert found("brandy " + "zyzzyva " * 10_000) == ["Smuggler's Cave"]

    def test_passage_is_the_matching_part_of_a_long_page(self, backend, told):
        hit = told(backend.search("kraken bronze bell"))[0]

        assert hit.page.name.full == "Chronicle"
        assert "kraken" in hit.passage
        assert len(hit.passage) <= MAX_CHUNK_CHARACTERS < len(hit.page.body)

    def test_a_better_hit_has_a_greater_score(self, backend, told):
        scores = [hit.score for hit in told(backend.search("lamp brandy"))]

        assert scores == sorted(scores, reverse=True)

    # Listing, linking, all pages

    def test_pages_of_a_namespace_are_listed_by_title(self, backend, told):
        names = told(backend.listed("Instructions"))

        assert [name.title for name in names] == ["Create/Person", "Create/Source", "Style"]

    def test_pages_are_listed_by_title_prefix(self, backend, told):
        names = told(backend.listed("Instructions", prefix="Create/"))

        assert [name.title for name in names] == ["Create/Person", "Create/Source"]

    def test_an_empty_namespace_has_no_pages(self, backend, told):
        assert list(told(backend.listed("Talk", prefix="Nobody"))) == []

    def test_links_are_returned_for_each_page(self, backend, told):
        links = told(backend.linking([page_name("Harbour Master"), page_name("Style")]))

        assert [[name.full for name in names] for names in links] == [["Sources:Ledger"], []]

    def test_small_knowledge_base_is_returned_whole(self, backend, told):
        names = {page.name.full for page in told(backend.pages(most_characters=1_000_000))}

        assert names >= {page.name.full for page in PAGES if page.meta.redirect is None}

    def test_too_large_knowledge_base_is_not_returned(self, backend, told):
        assert told(backend.pages(most_characters=1_000)) is None

    # Writing

    def test_new_page_exists_after_writing(self, backend, told, fetched):
        written = told(backend.write(a_draft("Buoy", "Red and [[Ferry|wet]].")))

        (page,) = fetched("Buoy")
        assert page == written
        assert (page.body, [name.full for name in page.links]) == (
            "Red and [[Ferry|wet]].",
            ["Ferry"],
        )

    def test_page_is_overwritten_at_the_revision_of_the_draft(self, backend, told, fetched):
        first = told(backend.write(a_draft("Pier", "Old planks.")))
        second = told(backend.write(a_draft("Pier", "New planks.", was=first.revision)))

        assert second.revision != first.revision
        assert fetched("Pier")[0].body == "New planks."

    def test_page_changed_since_the_draft_is_not_overwritten(self, backend, told, fetched):
        first = told(backend.write(a_draft("Quay", "Old stones.")))
        told(backend.write(a_draft("Quay", "Anna's stones.", was=first.revision)))

        with pytest.raises(BackendError):
            told(backend.write(a_draft("Quay", "Ben's stones.", was=first.revision)))

        assert fetched("Quay")[0].body == "Anna's stones."

    def test_new_page_does_not_overwrite_an_existing_one(self, backend, told, fetched):
        told(backend.write(a_draft("Crane", "Tall.")))

        with pytest.raises(BackendError):
            told(backend.write(a_draft("Crane", "Small.")))

        assert fetched("Crane")[0].body == "Tall."


def a_draft(title: str, body: str, *, was: str = "", **meta: Any) -> PageDraft:
    return PageDraft(
        page=a_page(title, body, **meta), was=was, by=trusted("Anna"), note="for a test"
    )
