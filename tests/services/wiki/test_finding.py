"""Test searches of a wiki: which words are sent, and how the results are ranked."""

import pytest

from evennia_ai.engine.knowledge.pages.page import page_name
from tests.services.wiki.conftest import Making, Outcome
from tests.services.wiki.stub_wiki import StubWiki, refuses, usual


def words_asked(wiki: StubWiki) -> set[str]:
    return {one["srsearch"] for one in wiki.asked_for(list="search")}


def test_page_with_more_of_the_words_is_ranked_first(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {"Oren": "He keeps salt.", "Mill": "Salt in barrels.", "Ferry": "A boat."}
    wiki.found = ["Oren", "Ferry", "Mill"]
    hits = outcome(base().search("barrels of salt"))
    assert [hit.page.name.full for hit in hits] == ["Mill", "Oren"]
    assert hits[0].passage == "Salt in barrels."
    assert hits[0].score > hits[1].score


def test_search_returns_at_most_the_wanted_number_of_pages(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {f"Page {number}": "salt" for number in range(5)}
    wiki.found = list(wiki.texts)
    hits = outcome(base().search("salt", limit=2))
    assert [hit.page.name.full for hit in hits] == ["Page 0", "Page 1"]


def test_word_is_searched_with_its_other_forms(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    outcome(base().search("Whose ferries, boats and café"))
    assert words_asked(wiki) == {
        *("whose*", "ferr*", "boat*", "café"),
        "whose* ferr* boat* café",
    }


@pytest.mark.parametrize(
    "query",
    [
        'insource:/.*/ OR -salt AND (intitle:"x*") NEAR ~y!z',
        "salt" + "\x00" + "'; DROP TABLE page; --",
        "[[x]] {{y}} | \x1f \u202e",
        "+a -b <c >d",
    ],
)
def test_search_operators_of_a_query_do_not_reach_the_wiki(
    wiki: StubWiki, base: Making, outcome: Outcome, query: str
) -> None:
    outcome(base().search(query))
    asked = "".join(words_asked(wiki)).replace("*", "").replace(" ", "")
    assert asked.isalnum()
    assert asked == asked.casefold()


def test_query_without_words_sends_no_request(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    assert outcome(base().search('?! "" ...')) == []
    assert wiki.asked_for(list="search") == []


def test_short_word_is_sent_only_without_longer_ones(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    outcome(base().search("the pie"))
    assert words_asked(wiki) == {"the pie", "the", "pie"}


def test_single_word_takes_two_searches(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    outcome(base().search("ferry"))
    assert sorted(one["srwhat"] for one in wiki.asked_for(list="search")) == ["text", "title"]


def test_long_query_sends_six_words(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    outcome(base().search(" ".join(f"word{number:04}" for number in range(10_000))))
    assert len(words_asked(wiki)) == 7


def test_only_the_wanted_namespaces_are_searched(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    outcome(base().search("salt", namespaces=["Talk", "Main"]))
    asked = wiki.asked_for(list="search")
    assert {frozenset(one["srnamespace"].split("|")) for one in asked} == {
        frozenset({"0", "1", "3001", "3003"})
    }


def test_wiki_without_title_search_is_searched_by_text(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts["Mill"] = "Salt."
    wiki.found = ["Mill"]
    refused = refuses("search-title-disabled")

    def no_titles(handler):
        (refused if handler.asked.get("srwhat") == "title" else usual)(handler)

    wiki.behaves(usual, *[no_titles] * 4)
    (hit,) = outcome(base().search("salt"))
    assert hit.page.name == page_name("Mill")


def test_page_found_under_two_names_is_one_hit(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {"Mill": "Salt.", "Old Mill": ""}
    wiki.redirects["Old Mill"] = "Mill"
    wiki.found = ["Mill", "Old Mill"]
    assert len(outcome(base().search("salt"))) == 1


@pytest.fixture
def small(wiki: StubWiki) -> StubWiki:
    """A wiki with few pages."""
    wiki.pages_there = 3
    wiki.texts |= {
        "Café": "Brandy and 清晨的渡船.",
        "Sources:Ledger": "Salt.",
        "Grey Lady": "#REDIRECT [[Café]]",
    }
    return wiki


@pytest.mark.parametrize("query", ["cafe", "BRANDIES", "渡船", "grey lady"])
def test_small_wiki_is_searched_like_the_games_own_pages(
    small: StubWiki, base: Making, outcome: Outcome, query: str
) -> None:
    hits = outcome(base().search(query))
    assert [hit.page.name.full for hit in hits] == ["Café"]
    assert small.asked_for(list="search") == []


def test_small_wiki_is_searched_in_the_wanted_namespaces(
    small: StubWiki, base: Making, outcome: Outcome
) -> None:
    assert outcome(base().search("salt", namespaces=["Main"])) == []


def test_wiki_that_became_large_is_searched_by_itself(
    small: StubWiki, base: Making, outcome: Outcome
) -> None:
    small.texts |= {f"Page {number}": "Fog." for number in range(301)}
    small.found = ["Café"]
    hits = outcome(base().search("brandy"))
    assert [hit.page.name.full for hit in hits] == ["Café"]


def test_all_pages_are_returned_if_they_are_short_enough(
    small: StubWiki, base: Making, outcome: Outcome
) -> None:
    del small.texts["Grey Lady"]
    backend = base()
    characters = sum(map(len, small.texts.values()))
    pages = outcome(backend.pages(most_characters=characters))
    assert [page.name.full for page in pages] == ["Café", "Sources:Ledger"]
    assert outcome(backend.pages(most_characters=characters - 1)) is None
