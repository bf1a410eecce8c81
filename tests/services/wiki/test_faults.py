"""Test that the game continues and reports what happened, whatever a wiki does."""

import json

import pytest

from evennia_ai.engine.knowledge.pages.page import BackendError, page_name
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.wiki.backend import MediaWikiBackend
from tests.services.net.handover import Handover, told_of
from tests.services.wiki.builders import a_draft
from tests.services.wiki.conftest import Making, Outcome
from tests.services.wiki.stub_wiki import (
    PASSWORD,
    StubWiki,
    answers,
    hangs_up,
    refuses,
    sends,
    stalls,
    usual,
)

FERRY = page_name("Ferry")


@pytest.fixture(autouse=True)
def _a_page(wiki: StubWiki) -> None:
    wiki.texts["Ferry"] = "It crosses at dawn."


def test_unreachable_wiki_is_named_in_the_error(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    backend = base(api="http://127.0.0.1:9/api.php")
    problem = outcome(backend.fetch([FERRY]))
    assert isinstance(problem, BackendError)
    assert str(problem).startswith(
        "knowledge base 'harbour': the wiki at 127.0.0.1:9 cannot be reached"
    )


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (sends(b"<html>Log in first</html>"), "did not answer with JSON"),
        (sends(b'{"query": '), "did not answer with JSON"),
        (sends(b"\xff\xfe"), "did not answer with JSON"),
        (sends(b"[" * 100_000), "did not answer with JSON"),
        (sends(b"[1]"), "did not answer with JSON"),
        (sends(b'"' + b"x" * 10_000_000 + b'"'), "more than 9,000,000 bytes"),
        (sends(b"oh no", status=500), "status 500"),
        (sends(b"", status=404), "status 404"),
        (
            sends(b"", status=302, Location="http://evil.example/api.php"),
            "redirects to evil.example",
        ),
        (refuses("readonly", "The database is locked."), "refused: The database is locked."),
        (refuses("x", "a\x1b[31mred\x00\u202eword"), "refused: a[31mredword"),
        (answers({"error": {"code": 5}}), "no reason given"),
        (hangs_up, "broke off the connection"),
    ],
)
def test_bad_answer_of_a_wiki_is_reported(
    wiki: StubWiki, base: Making, outcome: Outcome, behaviour: object, told: str
) -> None:
    wiki.behaves(behaviour)
    problem = outcome(base().fetch([FERRY]))
    assert isinstance(problem, BackendError)
    assert told in str(problem)


def test_redirect_of_a_wiki_is_not_followed(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    elsewhere = StubWiki()
    wiki.behaves(sends(b"", status=302, Location=elsewhere.api))
    outcome(base(user="Admin@game", password=SecretText(PASSWORD)).fetch([FERRY]))
    elsewhere.close()
    assert elsewhere.requests == []


def test_silent_wiki_fails_at_the_time_limit(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.behaves(stalls)
    problem = outcome(base(request_seconds=0.2).fetch([FERRY]))
    assert "did not answer for 0.2 seconds" in str(problem)


def test_all_attempts_share_one_time_limit(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    wiki.behaves(stalls, stalls, stalls, stalls)
    backend = base(request_seconds=10, whole_seconds=0.3, max_retries=3)
    assert "did not answer within 0.3 seconds" in str(outcome(backend.fetch([FERRY])))


@pytest.mark.parametrize(
    "behaviour",
    [
        sends(b"", status=500),
        sends(b"", status=429, Retry_After="0"),
        sends(b"", status=503, Retry_After="0"),
        refuses("maxlag", "Waiting for a database: 7 seconds lagged", Retry_After="0"),
        refuses("ratelimited", Retry_After="0"),
        hangs_up,
    ],
)
def test_temporary_failure_is_retried(
    wiki: StubWiki, base: Making, outcome: Outcome, behaviour: object
) -> None:
    wiki.behaves(behaviour)
    (page,) = outcome(base(max_retries=1).fetch([FERRY]))
    assert page.body == "It crosses at dawn."


@pytest.mark.parametrize("behaviour", [sends(b"", status=404), refuses("readonly"), sends(b"no")])
def test_permanent_failure_is_not_retried(
    wiki: StubWiki, base: Making, outcome: Outcome, behaviour: object
) -> None:
    wiki.behaves(behaviour)
    outcome(base(max_retries=3).fetch([FERRY]))
    assert len(wiki.requests) == 1


def test_wiki_that_asks_for_an_hour_is_not_waited_for(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.behaves(sends(b"", status=429, Retry_After="3600"))
    assert "status 429" in str(outcome(base(max_retries=3).fetch([FERRY])))


def test_every_request_asks_to_be_refused_while_the_wiki_lags(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    outcome(base().fetch([FERRY]))
    assert {one["maxlag"] for one in wiki.requests} == {"5"}


def test_circular_continuation_is_stopped(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    circle = answers({"continue": {"apcontinue": "A", "continue": "-||"}, "query": {}})
    wiki.behaves(usual, circle, circle, circle)
    assert "twice to the same next part" in str(outcome(base().listed("Main")))


@pytest.mark.long
def test_endless_continuation_is_stopped(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    further = [answers({"continue": {"apcontinue": str(number)}}) for number in range(250)]
    wiki.behaves(usual, *further)
    assert "200 parts of an answer" in str(outcome(base().listed("Main")))


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"query": None},
        {"query": []},
        {"query": {"pages": "x"}},
        {"query": {"pages": [None, 7, []]}},
        {"query": {"pages": [{"title": 5, "ns": "0", "pageid": True}], "redirects": [{"from": 1}]}},
    ],
)
def test_answer_of_another_form_has_no_page(
    wiki: StubWiki, base: Making, outcome: Outcome, junk: object
) -> None:
    wiki.behaves(usual, answers(junk))
    assert outcome(base().fetch([FERRY])) == [None]


def test_wiki_error_never_shows_the_password(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    echo = json.dumps({"error": {"code": "x", "info": f"You sent {PASSWORD} to me"}}).encode()
    wiki.behaves(usual, sends(echo))
    problem = outcome(base(user="Admin@game", password=SecretText(PASSWORD)).fetch([FERRY]))
    assert "You sent *** to me" in told_of(problem)
    assert PASSWORD not in told_of(problem)


def test_failing_request_has_no_password_in_its_error(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    wiki.behaves(usual, hangs_up)
    problem = outcome(base(user="Admin@game", password=SecretText(PASSWORD)).fetch([FERRY]))
    assert problem.__cause__ is None
    assert problem.__context__ is None


def test_refused_login_is_reported(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    problem = outcome(base(user="Admin@game", password=SecretText("wrong")).fetch([FERRY]))
    assert "does not let 'Admin@game' in: Wrong password." in str(problem)


def test_lost_login_is_repeated(wiki: StubWiki, editor: MediaWikiBackend, outcome: Outcome) -> None:
    outcome(editor.fetch([FERRY]))
    wiki.behaves(refuses("assertuserfailed"))
    (page,) = outcome(editor.fetch([FERRY]))
    assert page is not None
    assert len(wiki.asked_for(action="login")) == 2


def test_stale_token_is_replaced(
    wiki: StubWiki, editor: MediaWikiBackend, outcome: Outcome
) -> None:
    outcome(editor.write(a_draft("Tower")))
    wiki.behaves(usual, refuses("badtoken"))
    page = outcome(editor.write(a_draft("Mill")))
    assert page.name == page_name("Mill")


@pytest.mark.parametrize("behaviour", [sends(b"", status=500), hangs_up])
def test_edit_with_unknown_outcome_is_not_sent_again(
    wiki: StubWiki, base: Making, outcome: Outcome, behaviour: object
) -> None:
    backend = base(max_retries=3)
    outcome(backend.fetch([FERRY]))
    wiki.behaves(usual, usual, behaviour)
    problem = outcome(backend.write(a_draft("Tower")))
    assert "not known whether the page was written" in str(problem)
    assert len(wiki.asked_for(action="edit")) == 1


def test_edit_over_the_time_limit_may_have_been_made(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    backend = base(whole_seconds=0.3)
    outcome(backend.fetch([FERRY]))
    wiki.behaves(usual, usual, stalls)
    problem = outcome(backend.write(a_draft("Tower")))
    assert "within 0.3 seconds; it is not known whether the page was written" in str(problem)


def test_simultaneous_first_questions_ask_for_namespaces_once(
    wiki: StubWiki, editor: MediaWikiBackend, outcome: Outcome
) -> None:
    together = [editor.fetch([FERRY]) for _ in range(5)]
    assert [outcome(one)[0].name for one in together] == [FERRY] * 5
    assert len(wiki.asked_for(meta="siteinfo")) == 1
    assert len(wiki.asked_for(action="login")) == 1


def test_wiki_that_was_down_is_asked_again(wiki: StubWiki, base: Making, outcome: Outcome) -> None:
    backend = base()
    wiki.behaves(sends(b"", status=500))
    assert isinstance(outcome(backend.fetch([FERRY])), BackendError)
    (page,) = outcome(backend.fetch([FERRY]))
    assert page is not None


def test_edit_that_certainly_failed_is_sent_again(
    wiki: StubWiki, base: Making, outcome: Outcome
) -> None:
    backend = base(max_retries=1)
    outcome(backend.fetch([FERRY]))
    wiki.behaves(usual, usual, refuses("maxlag", Retry_After="0"))
    assert outcome(backend.write(a_draft("Tower"))).name == page_name("Tower")


def test_base_works_again_after_its_bridge_was_stopped(
    reactor: Handover, base: Making, outcome: Outcome
) -> None:
    backend = base()
    outcome(backend.fetch([FERRY]))
    backend._bridge.stop()
    reactor.make_waiting_calls()
    (page,) = outcome(backend.fetch([FERRY]))
    assert page is not None


def test_closed_base_opens_again(base: Making, outcome: Outcome) -> None:
    backend = base()
    outcome(backend.fetch([FERRY]))
    backend.close()
    (page,) = outcome(backend.fetch([FERRY]))
    assert page is not None
