"""Test introductions from Wikipedia: short, plain, and within a time limit."""

import pytest

from evennia_ai.engine.knowledge.pages.page import BackendError
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.wiki.backend import INTRO_SECONDS, Intro, Wikipedia
from tests.services.wiki.conftest import Outcome
from tests.services.wiki.stub_wiki import StubWiki, answers, refuses, sends, stalls


@pytest.fixture
def wikipedia(wiki: StubWiki, bridge: AsyncBridge) -> Wikipedia:
    return Wikipedia(wiki.api, bridge)


def says(extract: object, *, title: str = "Ferry", **more: object):
    page = {"ns": 0, "title": title, "pageid": 1, "extract": extract, **more}
    return answers({"query": {"pages": [page]}})


def test_intro_has_the_title_of_the_article(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome
) -> None:
    wiki.behaves(says("A ferry is a boat."))
    assert outcome(wikipedia.intro("ferries")) == Intro(title="Ferry", text="A ferry is a boat.")


def test_intro_takes_one_short_anonymous_request(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome
) -> None:
    wiki.behaves(says("A ferry is a boat."))
    outcome(wikipedia.intro("ferries"))
    (asked,) = wiki.requests
    assert asked["prop"] == "extracts|pageprops"
    assert (asked["exintro"], asked["explaintext"], asked["redirects"]) == ("1", "1", "1")
    assert asked["titles"] == "Ferries"


@pytest.mark.parametrize(
    "entity", ["", "  ", "a|b", "[[Ferry]]", "x" * 300, "Sources:Ledger", "a\x00b", "{{x}}"]
)
def test_impossible_title_is_not_requested(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome, entity: str
) -> None:
    assert outcome(wikipedia.intro(entity)) is None
    assert wiki.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        says("Ferry may mean:", pageprops={"disambiguation": ""}),
        says(""),
        says(None),
        says(7),
        says("Page of a user.", ns=2),
        answers({"query": {"pages": [{"ns": 0, "title": "Ferry", "missing": True}]}}),
        answers({"query": {}}),
    ],
)
def test_page_that_is_no_article_has_no_intro(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome, answer
) -> None:
    wiki.behaves(answer)
    assert outcome(wikipedia.intro("Ferry")) is None


def test_long_intro_ends_with_a_sentence(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome
) -> None:
    wiki.behaves(says("This is a sentence. " * 500))
    text = outcome(wikipedia.intro("Ferry")).text
    assert 1_400 < len(text) <= 1_500
    assert text.endswith("sentence.")


def test_wikipedia_intro_ends_with_an_ellipsis_when_it_has_no_sentence_end(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome
) -> None:
    wiki.behaves(says("x" * 5_000))
    assert outcome(wikipedia.intro("Ferry")).text == "x" * 1_499 + "…"


def test_intro_has_no_terminal_control_characters(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome
) -> None:
    wiki.behaves(says("A\x1b[2Jferry\x00 is\u202e a\u200b boat.\r\nIt\tfloats."))
    assert outcome(wikipedia.intro("Ferry")).text == "Aferry is a boat.\nIt floats."


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (sends(b"<html>"), "did not answer with JSON"),
        (refuses("internal"), "refused: Not now."),
        (sends(b"", status=404), "status 404"),
    ],
)
def test_failed_request_for_an_intro_is_an_error(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome, answer, told: str
) -> None:
    wiki.behaves(answer)
    problem = outcome(wikipedia.intro("Ferry"))
    assert isinstance(problem, BackendError)
    assert told in str(problem)


@pytest.mark.req("S4-17")
def test_intro_request_does_not_block(
    wiki: StubWiki, wikipedia: Wikipedia, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evennia_ai.services.wiki.backend.INTRO_SECONDS", 0.2)
    wiki.behaves(stalls)
    assert "did not answer within 0.2 seconds" in str(outcome(wikipedia.intro("Ferry")))


def test_intro_fails_after_five_seconds() -> None:
    assert INTRO_SECONDS == 5
