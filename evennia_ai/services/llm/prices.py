"""What calls of models cost, in US dollars.

A profile's own `price` comes first. Models that run offline or at a local address cost nothing. The
prices of all other models come from the tables that the package `genai-prices` contains. Nothing
is read from the network. A price that is in neither place is not known, which is None and never 0.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from evennia_ai.services.llm.chat import Usage
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.services.llm.profiles import ModelProfile, Price

_PER_TOKEN: Final = NANODOLLARS // 10**6
"""Nanodollars of one token if a million tokens cost one dollar."""
_LOCAL_NAMES: Final = (".localhost", ".local", ".lan", ".internal", ".home.arpa")
"""How names of machines end that are not on the internet."""
_MOST_MODELS: Final = 256
_FREE_MODEL: Final = ":free"
"""How OpenRouter ends the names of models that cost nothing."""

log: Final = logging.getLogger(__name__)


def call_cost(profile: ModelProfile, usage: Usage, *, at: float) -> int | None:
    """Return the nanodollars of a call, None if the price of the model is not known.

    Args:
        at: When the call began, in seconds since 1970. Some providers change prices by date or
            time of day.
    """
    if not usage.input_tokens and not usage.output_tokens:
        return 0
    if profile.price is not None:
        return _own_cost(profile.price, usage)
    return 0 if costs_nothing(profile) else _listed_cost(profile, usage, at=at)


def costs_nothing(profile: ModelProfile) -> bool:
    """True if no server is asked, or a server at an address that is not on the internet."""
    return profile.client in ("offline", "scripted") or is_local(profile.base_url)


def needs_tables(profile: ModelProfile) -> bool:
    """True if the price of the model must be looked up in the price tables.

    That is so unless the profile states a price or the model costs nothing.
    """
    return profile.price is None and not costs_nothing(profile)


def unknown_price(profile: ModelProfile) -> str:
    """Return what to do about a profile whose price is not known, or ""."""
    if not needs_tables(profile) or _is_listed(profile.base_url, profile.model):
        return ""
    return (
        f"no price known for model {profile.model} of profile {profile.name}: set"
        f" EVENNIA_AI_PROFILES[{profile.name!r}]['price'], such as {{'input': 0.25, 'output': 2}}"
        " (dollars per million tokens)"
    )


@lru_cache(maxsize=_MOST_MODELS)
def is_local(address: str) -> bool:
    """True if a URL names this machine or another one that is not on the internet."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    try:
        found = ip_address(host)
    except ValueError:  # a name and not a number
        return bool(host) and ("." not in host or host.endswith(_LOCAL_NAMES))
    return not found.is_global


def load_prices() -> None:
    """Load the tables of prices, which takes a few tenths of a second. Call this in a thread."""
    _is_listed("https://api.openai.com", "gpt-4o")


@cache
def _tables() -> Callable[..., Any] | None:
    """Return a function that prices a usage by the tables, None if they are not installed."""
    try:
        from genai_prices import Usage as ListedUsage
        from genai_prices import calc_price
    except ImportError as error:
        log.warning(
            'evennia_ai: prices of models are not known: %s; pip install "evennia-ai[game]"'
            " installs what is missing",
            error,
        )
        return None

    def price(address: str, model: str, at: datetime, **tokens: int) -> Any:
        return calc_price(
            ListedUsage(**tokens), model, provider_api_url=address, genai_request_timestamp=at
        )

    return price


@lru_cache(maxsize=_MOST_MODELS)
def _is_listed(address: str, model: str) -> bool:
    """True if the tables have a price per token for the model that this server offers."""
    price = _tables()
    if price is None:
        return False
    try:
        found = price(address, model, datetime.now(UTC), input_tokens=1, output_tokens=1)
    except LookupError:
        return False
    return bool(found.total_price) or model.endswith(_FREE_MODEL)


def _own_cost(price: Price, usage: Usage) -> int:
    cached, written = usage.cached_tokens, usage.written_tokens
    of_cached = price.input if price.cached is None else price.cached
    of_written = price.input if price.written is None else price.written
    return round(
        _PER_TOKEN
        * (
            price.input * (usage.prompt_tokens - cached - written)
            + of_cached * cached
            + of_written * written
            + price.output * usage.output_tokens
        )
    )


def _listed_cost(profile: ModelProfile, usage: Usage, *, at: float) -> int | None:
    price = _tables()
    if price is None or not _is_listed(profile.base_url, profile.model):
        return None
    found = price(
        profile.base_url,
        profile.model,
        datetime.fromtimestamp(at, UTC),
        input_tokens=usage.prompt_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.written_tokens,
        output_tokens=usage.output_tokens,
    )
    return round(Decimal(found.total_price) * NANODOLLARS)
