"""Test that endpoints are checked when they are made, and never show their key."""

import copy
import pickle
from typing import Any

import pytest

from evennia_ai.engine.errors import EndpointError
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.secrets import SecretText

KEY = "sk-very-secret-4711"


def an_endpoint(**values: Any) -> Endpoint:
    wanted = {"name": "main", "base_url": "http://127.0.0.1:8080/v1", "model": "tiny"}
    return Endpoint(**(wanted | values))


def test_printed_endpoint_does_not_contain_the_key() -> None:
    endpoint = an_endpoint(api_key=SecretText(KEY))
    assert KEY not in f"{endpoint} {endpoint!r} {endpoint.api_key} {endpoint.api_key!r}"
    assert endpoint.api_key.reveal() == KEY


def test_key_cannot_be_pickled_or_copied() -> None:
    for keep in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="never stored"):
            keep(an_endpoint(api_key=SecretText(KEY)))


def test_keys_are_equal_if_their_texts_are() -> None:
    assert SecretText(KEY) == SecretText(KEY) != SecretText("other")
    assert SecretText(KEY) != KEY
    assert not SecretText()
    assert len({SecretText(KEY), SecretText(KEY)}) == 1


def test_empty_key_masks_nothing() -> None:
    assert SecretText().mask_in("plain words") == "plain words"


@pytest.mark.parametrize(
    "address", ["https://models.example/v1", "http://localhost:11434/v1", "http://[::1]:80/v1"]
)
def test_http_and_https_addresses_are_accepted(address: str) -> None:
    assert an_endpoint(base_url=address).base_url == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8080",
        "ftp://models.example",
        "http://",
        "http://[::1",
        "http://host:port/v1",
        "file:///etc/passwd",
        "http://local host/v1",
        "http://localhost/v1\n",
        "http://localhost/\x7f",
        f"https://user:{KEY}@models.example/v1",
        f"https://models.example/v1?key={KEY}",
    ],
)
def test_other_addresses_are_refused_without_being_quoted(address: str) -> None:
    with pytest.raises(EndpointError, match="endpoint 'main': base_url") as caught:
        an_endpoint(base_url=address)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("timeout_seconds", 0),
        ("timeout_seconds", float("nan")),
        ("timeout_seconds", float("inf")),
        ("idle_seconds", 0),
        ("max_retries", -1),
        ("max_concurrent", 0),
        ("max_reply_bytes", 0),
        ("api_key", SecretText("key\n")),
        ("api_key", SecretText("two words")),
        ("api_key", SecretText("clé")),
    ],
)
def test_invalid_endpoint_value_names_its_field(field: str, value: object) -> None:
    with pytest.raises(EndpointError, match=f"endpoint 'main': {field} ") as caught:
        an_endpoint(**{field: value})
    assert caught.value.field == field


def test_quoted_words_are_one_short_line_without_the_key() -> None:
    endpoint = an_endpoint(api_key=SecretText(KEY))
    assert endpoint.api_key.quote(f"bad\n\x1b[31m key {KEY}", most=15) == "bad [31m key **"
