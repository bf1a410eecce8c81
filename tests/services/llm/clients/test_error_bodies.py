"""Test that the explanation and the status of an error are found in any structure."""

import json
from typing import Any

import pytest

from evennia_ai.services.llm.clients.error_bodies import (
    is_error,
    readable_start,
    redirection,
    status_of,
    words_in,
    words_of,
)

EXTRA = "Extra inputs are not permitted"
RAW = json.dumps({"error": {"message": "model is overloaded", "code": 503}})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "No", "type": "x", "code": None}}, "No"),
        ({"error": "No"}, "No"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"type": "x", "loc": ["body", "user"], "msg": EXTRA}]}, f"user: {EXTRA}"),
        ({"message": {"detail": [{"loc": ["body", "a", 0], "msg": "No"}]}}, "a.0: No"),
        ({"errors": [{"code": 7003, "message": "No"}, {"message": "More"}]}, "No; More"),
        ({"errors": ["No", "No"]}, "No"),
        ({"error": [{"message": "No"}]}, "No"),
        ([{"error": {"code": 400, "message": "No", "status": "INVALID_ARGUMENT"}}], "No"),
        ({"code": 1, "msg": "No"}, "No"),
        ({"error_code": 1, "error_msg": "No"}, "No"),
        ({"base_resp": {"status_code": 1004, "status_msg": "login fail"}}, "login fail"),
        ({"error": "invalid", "error_description": "No such key"}, "invalid: No such key"),
        ({"error": True, "message": "No"}, "No"),
        ({"Message": "No"}, "No"),
        (
            {"error": {"message": "Provider error", "code": 502, "metadata": {"raw": RAW}}},
            "Provider error: model is overloaded",
        ),
        ({"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
         "too long"),
        ({"error": json.dumps({"error": {"message": "No"}})}, "No"),
        ({"error": {"message": "No", "code": "insufficient_quota"}}, "No (insufficient_quota)"),
        ({"error": {"code": 5}}, ""),
        ({"status": "ok"}, ""),
        (None, ""),
        (7, ""),
    ],
)  # fmt: skip
def test_explanation_in_an_error_body_is_found(body: Any, words: str) -> None:
    assert words_of(body) == words
    assert words_in(json.dumps(body).encode()) == (words or json.dumps(body))


def test_nested_error_body_is_searched_to_a_limited_depth() -> None:
    body: Any = {"message": "No"}
    for _ in range(500):
        body = {"error": [body]}
    assert words_of(body) == ""
    assert status_of(body) is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": 502}, 502),
        ({"code": "502"}, 502),
        ({"status": 429}, 429),
        ({"code": "server_error"}, 500),
        ({"type": "server_error", "code": None}, 500),
        ({"type": "tokens", "code": "rate_limit_exceeded"}, 429),
        ({"code": "insufficient_quota", "type": "insufficient_quota"}, 402),
        ({"type": "overloaded"}, 529),
        ({"type": "overloaded_error"}, 529),
        ({"status": "RESOURCE_EXHAUSTED"}, 429),
        ({"status": "UNAVAILABLE"}, 503),
        ({"type": "InternalServerError"}, 500),
        ({"type": "BadRequestError"}, 400),
        ({"type": "invalid_request_error", "code": "context_length_exceeded"}, 400),
        ({"code": "invalid_api_key"}, 401),
        ({"code": 200}, None),
        ({"code": True}, None),
        ({"code": "9" * 5_000}, None),
        ({"type": "odd"}, None),
        ("no such model", None),
        ("overloaded_error", 529),
        ("Not Found", 404),
        ({"message": "Unauthorized"}, 401),
    ],
)
def test_status_is_read_from_number_digits_or_word(error: Any, status: int | None) -> None:
    assert status_of({"error": error}) == status
    assert status_of([{"error": error}]) == status
    assert status_of({"error": json.dumps(error)}) == status


@pytest.mark.parametrize(
    ("answer", "is_one"),
    [
        ({"error": {"message": "No"}}, True),
        ({"object": "error", "message": "No"}, True),
        ({"type": "error", "error": None}, True),
        ({"detail": "Not Found"}, True),
        ({"msg": "No"}, True),
        ({"choices": None, "base_resp": {"status_code": 1004}}, True),
        ({"choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}}, False),
        ({"choices": [], "error": None, "message": "fine"}, False),
        ({"type": "message_start", "message": {"content": []}}, False),
        ({"type": "ping"}, False),
        ({}, False),
    ],
)
def test_error_object_is_distinguished_from_a_reply(answer: dict[str, Any], is_one: bool) -> None:
    assert is_error(answer) is is_one


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html><head><title>502 Bad\nGateway</title></head><body>nginx</body>", "502 Bad Gateway"),
        ("<!DOCTYPE html><body><h1>Welcome</h1> to <b>us</b></body>", "Welcome to us"),
        ("<html><body><div id=root></div></body></html>", "a page without words"),
        (" upstream connect error ", "upstream connect error"),
        ("", ""),
    ],
)
def test_web_page_is_quoted_by_its_title_or_text(text: str, words: str) -> None:
    assert readable_start(text) == words


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("https://models.example/v1/x?key=secret", "it redirects to https://models.example/v1/x"),
        ("https://name:secret@models.example/", "it redirects to https://models.example/"),
        ("/v1/chat/completions", "it redirects to /v1/chat/completions"),
        ("", "it redirects without saying where to"),
        ("https://[", "it redirects without saying where to"),
    ],
)
def test_redirect_is_reported_with_its_target_and_no_secret(location: str, words: str) -> None:
    assert redirection(location) == words
