"""Test prices of model calls, with fifty usages of real providers."""

import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.services.llm import prices
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.clients.anthropic import AnthropicReply
from evennia_ai.services.llm.clients.openai import OpenAIReply
from evennia_ai.services.llm.money import NANODOLLARS, describe_cost, in_dollars
from evennia_ai.services.llm.prices import call_cost, costs_nothing, unknown_price
from evennia_ai.services.llm.profiles import Endpoint, ModelProfile, Price
from tests.services.llm.builders import a_request

RECORDED: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "recorded_usages.yaml").read_text(encoding="utf-8")
)
NOON = datetime.fromisoformat("2026-11-16T12:00:00Z").timestamp()
USAGE = Usage(input_tokens=1000, cached_tokens=200, written_tokens=300, output_tokens=50)


def a_profile(base_url: str = "https://api.example/v1", **more: Any) -> ModelProfile:
    return ModelProfile(**{"name": "cheap", "model": "small", "base_url": base_url, **more})


def usage_in(row: dict[str, Any]) -> Usage:
    """Return the usage of a recorded reply as the client of its provider reads it."""
    endpoint = Endpoint(name="recorded", base_url=row["base_url"], model=row["model"])
    if "input_tokens" in row["usage"]:
        message = AnthropicReply(a_request(), endpoint)
        message.take_answer({"content": [], "usage": row["usage"]})
        found = message.usage()
    else:
        completion = OpenAIReply(a_request(), endpoint)
        choice = {"message": {"content": "Hello."}, "finish_reason": "stop"}
        completion.take_answer({"choices": [choice], "usage": row["usage"]})
        found = completion.usage()
    assert found is not None
    return found


def profile_of(row: dict[str, Any], **more: Any) -> ModelProfile:
    client = "anthropic" if "input_tokens" in row["usage"] else "openai"
    return a_profile(row["base_url"], model=row["model"], client=client, **more)


def test_cost_is_within_one_percent_on_fifty_recorded_usages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    off: dict[str, Decimal] = {}
    for number, row in enumerate(RECORDED):
        at = datetime.fromisoformat(row["at"]).timestamp()
        cost = call_cost(profile_of(row), usage_in(row), at=at)
        assert cost is not None, row["model"]
        expected = Decimal(row["dollars"]) * NANODOLLARS
        off[f"{number + 1} {row['model']}"] = abs(cost - expected) / expected
    worst = max(off, key=lambda one: off[one])
    with capsys.disabled():
        print(f" [{len(off)} usages, largest deviation {off[worst]:.4%} ({worst})]", end="")
    assert {model: str(share) for model, share in off.items() if share > Decimal("0.01")} == {}
    assert len(off) == 50


def test_own_price_gives_the_same_cost_as_the_tables_on_recorded_usages() -> None:
    for row in RECORDED:
        rates = dict(zip(("input", "output", "cached", "written"), row["rates"], strict=True))
        own = profile_of(row, price=Price(**rates))
        assert call_cost(own, usage_in(row), at=0.0) == round(Decimal(row["dollars"]) * NANODOLLARS)


@pytest.mark.parametrize(
    ("price", "dollars"),
    [
        (Price(input=1, output=10), "0.0015"),
        (Price(input=1, output=10, cached=0.1), "0.00132"),
        (Price(input=1, output=10, cached=0.1, written=1.25), "0.001395"),
        (Price(input=0, output=0), "0"),
    ],
)
def test_own_price_counts_each_token_of_the_prompt_once(price: Price, dollars: str) -> None:
    cost = call_cost(a_profile(price=price), USAGE, at=NOON)
    assert cost == Decimal(dollars) * NANODOLLARS


def test_cached_tokens_that_a_server_counts_separately_are_added_to_the_prompt() -> None:
    usage = Usage(input_tokens=100, cached_tokens=900, output_tokens=0)
    cost = call_cost(a_profile(price=Price(input=1, output=1, cached=0.1)), usage, at=NOON)
    assert cost == 100 * 1000 + 900 * 100


@pytest.mark.parametrize(
    ("given", "is_free"),
    [
        ({"client": "offline", "base_url": ""}, True),
        ({"client": "scripted", "base_url": ""}, True),
        ({"base_url": "http://127.0.0.1:8080/v1"}, True),
        ({"base_url": "http://[::1]:11434/v1"}, True),
        ({"base_url": "http://localhost:11434/v1"}, True),
        ({"base_url": "http://192.168.1.20:1234/v1"}, True),
        ({"base_url": "http://10.0.0.5/v1"}, True),
        ({"base_url": "http://100.101.102.103/v1"}, True),  # of a private network such as Tailscale
        ({"base_url": "http://ollama:11434/v1"}, True),
        ({"base_url": "http://host.docker.internal:11434/v1"}, True),
        ({"base_url": "https://gpu.lan/v1"}, True),
        ({"base_url": "http://8.8.8.8/v1"}, False),
        ({"base_url": "https://api.openai.com/v1"}, False),
        ({"base_url": "https://local.example/v1"}, False),
        ({"base_url": "", "client": "anthropic"}, False),
    ],
)
def test_only_models_off_the_internet_cost_nothing(given: dict[str, Any], is_free: bool) -> None:
    profile = a_profile(**given)
    assert costs_nothing(profile) is is_free
    if is_free:
        assert call_cost(profile, USAGE, at=NOON) == 0
        assert unknown_price(profile) == ""


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        ("https://api.example/v1", "gpt-4o"),  # a known name at an unknown server
        ("https://api.openai.com/v1", "gpt-nonsense-9"),
        ("https://api.openai.com/v1", "whisper-1"),  # priced by the hour and not by tokens
    ],
)
def test_unknown_price_is_none_and_says_what_to_set(base_url: str, model: str) -> None:
    profile = a_profile(base_url, model=model)
    assert call_cost(profile, USAGE, at=NOON) is None
    assert unknown_price(profile) == (
        f"no price known for model {model} of profile cheap: set"
        " EVENNIA_AI_PROFILES['cheap']['price'], such as {'input': 0.25, 'output': 2}"
        " (dollars per million tokens)"
    )
    assert unknown_price(a_profile(base_url, price=Price(input=1, output=1))) == ""


def test_free_model_of_a_router_has_the_known_price_zero() -> None:
    profile = a_profile("https://openrouter.ai/api/v1", model="deepseek/deepseek-chat:free")
    assert call_cost(profile, USAGE, at=NOON) == 0
    assert unknown_price(profile) == ""


def test_call_without_tokens_costs_nothing_even_if_the_price_is_unknown() -> None:
    assert call_cost(a_profile(), Usage(input_tokens=0, output_tokens=0), at=NOON) == 0


def test_price_is_unknown_and_logged_without_the_package(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    prices._tables.cache_clear()
    prices._is_listed.cache_clear()
    try:
        assert (
            call_cost(a_profile("https://api.openai.com/v1", model="gpt-4o"), USAGE, at=0) is None
        )
        assert 'pip install "evennia-ai[game]"' in caplog.text
    finally:
        prices._tables.cache_clear()
        prices._is_listed.cache_clear()


OF_A_LOCAL_MODEL = """
import sys
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.prices import call_cost, unknown_price
from evennia_ai.services.llm.profiles import ModelProfile
profile = ModelProfile(name="local", base_url="http://127.0.0.1/v1", model="m")
assert call_cost(profile, Usage(input_tokens=1, output_tokens=1), at=0.0) == 0
assert unknown_price(profile) == ""
assert "genai_prices" not in sys.modules
"""
WITHOUT_A_NETWORK = """
import socket
def refused(*args, **kwargs):
    raise AssertionError("a price was looked up in the network")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refused
from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.prices import call_cost
from evennia_ai.services.llm.profiles import ModelProfile
profile = ModelProfile(name="far", base_url="https://api.openai.com/v1", model="gpt-4o")
assert call_cost(profile, Usage(input_tokens=1000, output_tokens=0), at=1.7e9) == 2_500_000
import threading
assert threading.active_count() == 1
"""


@pytest.mark.parametrize("program", [OF_A_LOCAL_MODEL, WITHOUT_A_NETWORK])
def test_tables_are_imported_only_when_needed_and_ask_no_server(program: str) -> None:
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("nanodollars", "unpriced_calls", "words"),
    [
        (0, 0, ""),
        (150_600, 0, "$0.00015"),
        (None, 0, "no known price"),
        (0, 1, "1 call without a known price"),
        (12_345_678_901, 3, "$12.35, 3 calls without a known price"),
    ],
)
def test_cost_is_described_with_calls_of_unknown_price(
    nanodollars: int | None, unpriced_calls: int, words: str
) -> None:
    assert describe_cost(nanodollars, unpriced_calls) == words


@pytest.mark.parametrize(
    ("nanodollars", "words"),
    [
        (0, "$0"),
        (1, "$0.0000000010"),
        (999, "$0.0000010"),
        (42_000_000, "$0.042"),
        (99_960_000, "$0.10"),
        (420_000_000, "$0.42"),
        (999_999_999, "$1.00"),
        (1_234_567_890_123, "$1,234.57"),
    ],
)
def test_small_amounts_keep_two_digits(nanodollars: int, words: str) -> None:
    assert in_dollars(nanodollars) == words
