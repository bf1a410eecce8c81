"""What went wrong with one attempt to get a reply, and whether another one is worth it.

Worth it is what may be otherwise in a moment: too many requests, a broken server, a connection. A
request that was turned down or answered with rubbish is not sent again.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from math import isfinite
from typing import Final

from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import ModelError, ModelRefused, ModelUnavailable

LONGEST_HEADER: Final = 64
"""Characters of a header that are read; a date has 29."""

_TRANSIENT: Final = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setback:
    """Why an attempt failed; `again` says whether to try again, not before `after_seconds`."""

    error: ModelError
    again: bool = False
    after_seconds: float | None = None


def turned_down(
    endpoint: Endpoint, status: int, words: str, *, retry_in_seconds: float | None = None
) -> ModelRefused | ModelUnavailable:
    """The error that an answer with a status of failure is, in the server's own words."""
    said = endpoint.quoted(words) or "no reason given"
    if status in _TRANSIENT or status >= 500:
        return ModelUnavailable(
            endpoint.name,
            f"status {status}: {said}",
            status=status,
            retry_in_seconds=retry_in_seconds,
        )
    return ModelRefused(endpoint.name, status, said)


def setback_of_status(
    endpoint: Endpoint, status: int, words: str, headers: Mapping[str, str]
) -> Setback:
    """The setback of an answer with a status of failure; `headers` have names in small letters."""
    wait = retry_after_seconds(headers)
    error = turned_down(endpoint, status, words, retry_in_seconds=wait)
    again = isinstance(error, ModelUnavailable) and headers.get("x-should-retry") != "false"
    return Setback(error=error, again=again, after_seconds=wait)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, 10.2.3: a number or a date).

    `headers` have names in small letters.
    """
    for name, in_seconds in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, "")[:LONGEST_HEADER]) * in_seconds
        except ValueError:
            continue
        if isfinite(wait) and wait >= 0:
            return wait
    return _until_date(headers.get("retry-after", "")[:LONGEST_HEADER])


def _until_date(date: str) -> float | None:
    """Seconds until an HTTP date, None where it is none."""
    try:
        moment = parsedate_tz(date)
        return None if moment is None else max(0.0, mktime_tz(moment) - time.time())
    except (ValueError, OverflowError):
        return None
