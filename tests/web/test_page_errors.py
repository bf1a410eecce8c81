"""A page that fails: what its reader sees, and what the Server log contains."""

import pytest
from django.core.signals import got_request_exception
from django.test import RequestFactory, override_settings

from evennia_ai.npc.mind import status
from evennia_ai.web.page_errors import log_page_error
from evennia_ai.web.site import watch
from evennia_ai.web.site.page import FAILED, HEADERS

SECRET = "/srv/game/secret.py"


@pytest.fixture
def failing(monkeypatch):
    """Let the live page fail with an error that names a file and contains terminal colours."""

    def fail(*args):
        raise RuntimeError(f"{SECRET} \x1b[31mred\nsecond line")

    monkeypatch.setattr(status.past_turns, "newest_of_all", fail)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("form", ["html", "json"])
def test_failed_page_shows_no_internals_and_logs_its_traceback(
    played, browser, failing, logged, debug, form
):
    client = browser("Builder", raise_request_exception=False)
    with override_settings(DEBUG=debug):
        answer = client.get(f"/ai/live/?find=a-private-word&format={form}")
    text = answer.content.decode()
    assert (answer.status_code, FAILED in text) == (500, True)
    assert SECRET not in text and "Traceback" not in text and "RuntimeError" not in text
    assert {name: answer[name] for name in HEADERS} == HEADERS
    [line] = [line for line in logged if "failed" in line]
    assert line.startswith("evennia_ai: the page GET /ai/live/ failed\nTraceback")
    assert f"RuntimeError: {SECRET} \\x1b[31mred" in line and "\x1b" not in line
    assert "a-private-word" not in line


def test_failed_page_returns_the_problem_as_json(played, browser, failing):
    client = browser("Builder", raise_request_exception=False)
    assert client.get("/ai/live/?format=json").json() == {"problem": FAILED, "status": 500}


def test_page_with_a_failing_template_is_logged(played, browser, logged, monkeypatch):
    monkeypatch.setattr(watch.WatchPage, "template", "evennia_ai/no-such.html")
    client = browser("Builder", raise_request_exception=False)
    assert client.get("/ai/live/").status_code == 500
    assert any("TemplateDoesNotExist" in line for line in logged)


def test_errors_of_other_pages_of_the_site_are_logged(db, logged):
    request = RequestFactory().get("/characters/?word=private")
    try:
        raise ZeroDivisionError("elsewhere")
    except ZeroDivisionError:
        got_request_exception.send(sender=None, request=request)
    [line] = logged
    assert line.startswith("evennia_ai: the page GET /characters/ failed\n")
    assert line.endswith("ZeroDivisionError: elsewhere") and "private" not in line


def test_path_in_the_log_is_one_short_line(logged):
    request = RequestFactory().get("/ai/%0aevennia_ai:%20forged%1b[31m/" + "x" * 5000)
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        log_page_error(request=request)
    first = logged[0].splitlines()[0]
    assert len(first) < 260 and "\x1b" not in first and first.endswith("failed")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"CONTENT_TYPE": "multipart/form-data; boundary="}, 400),
        ({"CONTENT_TYPE": "multipart/form-data; boundary=x", "CONTENT_LENGTH": "-5"}, 400),
        ({"CONTENT_TYPE": "application/x-www-form-urlencoded", "body": b"a=1&" * 2000}, 400),
    ],
)
def test_request_refused_by_django_is_not_logged_as_an_error(played, browser, logged, sent, status):
    client = browser("Builder", raise_request_exception=False)
    body = sent.pop("body", b"nothing")
    kind = sent.pop("CONTENT_TYPE")
    answer = client.generic("POST", "/ai/cards/", body, content_type=kind, **sent)
    assert answer.status_code == status
    assert [line for line in logged if "Traceback" in line] == []
