"""Test that names of pages are translated between a wiki and us."""

from typing import Any

import pytest

from evennia_ai.engine.knowledge.pages.page import PageName, page_name
from evennia_ai.services.wiki.reading import names_of

GERMAN: dict[str, Any] = {
    "query": {
        "namespaces": {
            "0": {"id": 0, "name": ""},
            "1": {"id": 1, "name": "Diskussion", "canonical": "Talk"},
            "2": {"id": 2, "name": "Benutzer", "canonical": "User"},
            "8": {"id": 8, "name": "MediaWiki", "canonical": "MediaWiki"},
            "3000": {"id": 3000, "name": "Instructions"},
            "3001": {"id": 3001, "name": "Instructions Diskussion"},
            "102": {"id": 102, "name": "Quellen"},
            "103": {"id": 103, "name": "Quellen Diskussion"},
        },
        "namespacealiases": [{"id": 2, "alias": "Benutzerin"}],
    }
}
NAMES = names_of(GERMAN, {"Sources": 102})


@pytest.mark.parametrize(
    ("ours", "number", "theirs"),
    [
        ("Ferry", 0, "Ferry"),
        ("Ferry: a history", 0, "Ferry: a history"),
        ("Instructions:Core/Canon Policy", 3000, "Instructions:Core/Canon Policy"),
        ("Sources:Ledger", 102, "Quellen:Ledger"),
        ("Talk:Ferry", 1, "Diskussion:Ferry"),
        ("Talk:Sources:Ledger", 103, "Quellen Diskussion:Ledger"),
        ("Talk:Instructions:Interview", 3001, "Instructions Diskussion:Interview"),
    ],
)
def test_page_name_is_translated_to_the_wiki_and_back(ours: str, number: int, theirs: str) -> None:
    assert NAMES.title_of(page_name(ours)) == theirs
    assert NAMES.name_of(number, theirs) == page_name(ours)


@pytest.mark.parametrize(
    "title",
    [
        *("MediaWiki:Common.js", "mediawiki: Common.js", ":MediaWiki:Common.js", ": User:Anna"),
        *("Benutzer:Anna", "Benutzerin:Anna", "User:Anna", "Diskussion:Ferry", ":Ferry"),
        *("Talk:Talk:Ferry", "Talk:User:Anna", "Talk:Sources:"),
    ],
)
def test_title_never_leads_into_another_namespace(title: str) -> None:
    assert NAMES.title_of(page_name(title)) is None


def test_pages_of_other_namespaces_are_ignored() -> None:
    assert NAMES.name_of(2, "Benutzer:Anna") is None
    assert NAMES.name_of(8, "MediaWiki:Common.js") is None


def test_page_with_an_ambiguous_title_is_ignored() -> None:
    names = names_of({"query": {"namespaces": {"0": {"id": 0, "name": ""}}}}, {})
    assert names.name_of(0, "Sources:Ledger") is None


def test_wiki_without_sources_has_no_source_pages() -> None:
    names = names_of({"query": {"namespaces": {"0": {"id": 0, "name": ""}}}}, {})
    assert names.title_of(page_name("Sources:Ledger")) is None
    assert names.title_of(page_name("Talk:Ferry")) is None
    assert names.numbers_of("Sources") == {}
    assert names.numbers_of("Talk") == {}


def test_wiki_without_namespaces_has_an_encyclopedia() -> None:
    names = names_of({}, {"Sources": 102})
    assert names.numbers_of("Main") == {0: ""}
    assert names.numbers_of("Sources") == {}


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("Ferry", "Ferry"),
        ("Ferry: a history", "Ferry: a history"),
        ("Sources:Ledger", "Sources:Ledger"),
        ("Quellen:Ledger", "Sources:Ledger"),
        ("quellen diskussion: Ledger", "Talk:Sources:Ledger"),
        ("Diskussion:Ferry", "Talk:Ferry"),
    ],
)
def test_link_of_the_wiki_leads_to_our_page(link: str, leads_to: str) -> None:
    assert NAMES.linked(page_name(link)) == page_name(leads_to)


def test_link_to_a_user_leads_nowhere() -> None:
    assert NAMES.linked(PageName(namespace="Main", title="Benutzer:Anna")) is None


def test_talk_pages_are_in_three_namespaces() -> None:
    assert NAMES.numbers_of("Talk") == {1: "", 3001: "Instructions:", 103: "Sources:"}
