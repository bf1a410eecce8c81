"""Test that pages of a wiki are read in batches, in their newest revision, and cached."""

import logging

import pytest

from evennia_ai.engine.knowledge.pages.page import page_name
from tests.services.wiki.conftest import Making, Outcome
from tests.services.wiki.stub_wiki import StubWiki, answers, usual


def names(*titles: str) -> list:
    return [page_name(title) for title in titles]


def test_pages_have_the_order_of_the_requested_names(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {"Ferry": "A boat.", "Sources:Ledger": "Salt.", "Talk:Ferry": "Really?"}
    asked = names("Sources:Ledger", "Mill", "Talk:Ferry", "Ferry", "Ferry")
    pages = outcome(base().fetch(asked))
    assert [page and page.body for page in pages] == [
        "Salt.",
        None,
        "Really?",
        "A boat.",
        "A boat.",
    ]


def test_page_has_its_real_name_and_revision(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts["Ferry"] = "A boat."
    wiki.redirects["Grey Lady"] = "Ferry"
    (page,) = outcome(base().fetch(names("grey Lady")))
    assert (page.name, page.base, page.revision) == (page_name("Ferry"), "harbour", "101")


def test_circular_redirects_lead_nowhere(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    round_about = [{"from": "A", "to": "B"}, {"from": "B", "to": "A"}]
    wiki.behaves(usual, answers({"query": {"redirects": round_about, "pages": []}}))
    assert outcome(base().fetch(names("A"))) == [None]


def test_metadata_and_links_of_a_page_are_read(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts["Ferry"] = (
        '<nowiki>{"summary": "A boat.", "requires": ["Sources talk:Ledger"]}</nowiki>\n'
        "From [[Old Harbour]], as [[Sources talk:Ledger|told]]; [[User:Anna]] [[Category:Boats]]"
    )
    (page,) = outcome(base().fetch(names("Ferry")))
    assert page.meta.summary == "A boat."
    assert page.meta.requires == (page_name("Talk:Sources:Ledger"),)
    assert page.links == tuple(names("Old Harbour", "Talk:Sources:Ledger"))


def test_page_with_broken_metadata_has_only_its_text(
    wiki: StubWiki, base: Making, outcome: Outcome, caplog: pytest.LogCaptureFixture
) -> None:
    wiki.texts["Ferry"] = "---\nsummary: [\n---\nA boat of [[Oren]]."
    with caplog.at_level(logging.WARNING):
        (page,) = outcome(base().fetch(names("Ferry")))
    assert page.body == wiki.texts["Ferry"]
    assert page.links == (page_name("Oren"),)
    assert "'harbour': page Ferry is read as plain text" in caplog.text


def test_text_of_any_length_becomes_a_page_of_limited_length(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts["Ferry"] = "x" * 1_000_000
    (page,) = outcome(base().fetch(names("Ferry")))
    assert len(page.body) == 400_000


def test_hundred_and_twenty_pages_take_three_requests(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    titles = [f"Page {number}" for number in range(120)]
    wiki.texts |= {title: title for title in titles}
    pages = outcome(base().fetch(names(*titles)))
    assert [page.body for page in pages] == titles
    assert len(wiki.asked_for(prop="info")) == 3
    assert len(wiki.asked_for(prop="revisions")) == 3


def test_page_read_before_is_not_read_again(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.texts |= {"Ferry": "A boat.", "Mill": "Flour."}
    backend = base()
    outcome(backend.fetch(names("Ferry")))
    outcome(backend.fetch(names("Ferry", "Mill")))
    assert [one["revids"] for one in wiki.asked_for(prop="revisions")] == ["101", "102"]


def test_changed_page_is_read_again_at_once(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.texts["Ferry"] = "A boat."
    backend = base()
    outcome(backend.fetch(names("Ferry")))
    wiki.texts["Ferry"] = "A wreck in the mud."
    (page,) = outcome(backend.fetch(names("Ferry")))
    assert page.body == "A wreck in the mud."


def test_page_cache_is_limited(
    wiki: StubWiki, base: Making, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evennia_ai.services.wiki.reading.MOST_KEPT", 1)
    wiki.texts |= {"Ferry": "A boat.", "Mill": "Flour."}
    backend = base()
    outcome(backend.fetch(names("Ferry", "Mill")))
    outcome(backend.fetch(names("Mill")))
    outcome(backend.fetch(names("Ferry")))
    assert [one["revids"] for one in wiki.asked_for(prop="revisions")] == ["101|102", "101"]


def test_text_hidden_by_the_wiki_is_no_page(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.texts["Ferry"] = "A boat."
    hidden = {"revid": 101, "slots": {"main": {"texthidden": True}}}
    wiki.behaves(usual, usual, answers({"query": {"pages": [{"revisions": [hidden]}]}}))
    assert outcome(base().fetch(names("Ferry"))) == [None]


def test_answer_in_two_parts_is_joined(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    told = [{"ns": 0, "title": title} for title in ("Ferry", "Mill")]
    first = {"query": {"allpages": told[:1]}, "continue": {"apcontinue": "Mill"}}
    wiki.behaves(usual, answers(first), answers({"query": {"allpages": told[1:]}}))
    assert outcome(base().listed("Main")) == names("Ferry", "Mill")
    assert [one.get("apcontinue") for one in wiki.asked_for(list="allpages")] == [None, "Mill"]


def test_title_of_another_namespace_is_not_requested(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    assert outcome(base().fetch(names("User:Anna"))) == [None]
    assert wiki.asked_for(prop="info") == []


def test_title_in_another_case_is_searched_for(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {"Old Harbour": "Stone.", "Old Harbour Tales": "Lies."}
    wiki.found = ["Old Harbour Tales", "Old Harbour"]
    (page,) = outcome(base().fetch(names("OLD harbour")))
    assert page.name == page_name("Old Harbour")


def test_redirect_in_another_case_is_searched_for(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.texts |= {"Ferry": "A boat.", "Old Ferry": ""}
    wiki.redirects["Old Ferry"] = "Ferry"
    wiki.found = ["Old Ferry"]
    (page,) = outcome(base().fetch(names("old FERRY")))
    assert page.name == page_name("Ferry")


def test_alias_is_searched_for(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.texts["Ferry"] = '<nowiki>{"aliases": ["The Grey Lady"]}</nowiki>\nA boat.'
    wiki.found = ["Ferry"]
    (page,) = outcome(base().fetch(names("the grey lady")))
    assert page.name == page_name("Ferry")


def test_links_are_returned_page_by_page(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.texts |= {"Ferry": "[[Mill]] [[Oren]] [[Mill]]", "Mill": ""}
    links = outcome(base().linking(names("Ferry", "Mill", "Nowhere")))
    assert links == [tuple(names("Mill", "Oren")), (), ()]


def test_requests_have_the_user_agent_of_the_site(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    outcome(base(user_agent="harbour-game (anna@example.org)").fetch(names("Ferry")))
    assert set(wiki.agents) == {"harbour-game (anna@example.org)"}
