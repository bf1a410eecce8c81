"""What went wrong with one attempt to get a reply, and whether another one is worth it.

Worth it is what may be otherwise in a moment: too many requests, a broken server, a connection. A
request that was turned down or answered with rubbish is not sent again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai.errors import ModelError, ModelRefused, ModelUnavailable
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.net.http import FailedAttempt, retry_after_seconds

_TRANSIENT: Final = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest(FailedAttempt):
    """A request to a model that got no reply."""

    error: ModelError


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


def failed_with_status(
    endpoint: Endpoint, status: int, words: str, headers: Mapping[str, str]
) -> FailedRequest:
    """What an answer with a status of failure is; `headers` have names in small letters."""
    wait = retry_after_seconds(headers)
    error = turned_down(endpoint, status, words, retry_in_seconds=wait)
    again = isinstance(error, ModelUnavailable) and headers.get("x-should-retry") != "false"
    return FailedRequest(error=error, again=again, after_seconds=wait)
