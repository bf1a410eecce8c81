"""Send small requests to a model's server that do not call the model, and read its list of models.

Requests are sent in the bridge's thread. Responses are read up to a limit, because a list of models
has some megabytes at most.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evennia_ai.services.net.http import (
    BrokenOff,
    NoConnection,
    TooLarge,
    headers_of,
    http_client,
    json_value,
    open_response,
    receive_body,
)

if TYPE_CHECKING:
    import httpx2

MOST_BYTES: Final = 8_000_000
"""The most bytes of one response. A router lists several hundred models."""

MOST_LOCATION: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A request to the server that does not call the model."""

    address: str
    body: Mapping[str, Any] | None = None
    """The body of a POST request; None for a GET request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response to a probe. If `problem` says why there is none, the other fields are empty."""

    status: int = 0
    json: Any = None
    location: str = ""
    """The target of a redirect."""
    problem: str = ""


Fetch = Callable[[Sequence[Probe], float], Awaitable[Sequence[Answer]]]
"""A function that sends several probes at the same time and returns the answers in order.

Its number is the time limit in seconds.
"""


async def send_probes(
    probes: Sequence[Probe], *, headers: Mapping[str, str], seconds: float
) -> tuple[Answer, ...]:
    """Send all probes at the same time, and return the answers in the same order.

    Call it in the bridge's thread.

    Args:
        probes: The requests to send.
        headers: Headers of each request. They contain the key, so all addresses must be on the
            key's server.
        seconds: The time limit of each request.
    """
    client = http_client()
    try:
        sent = [_answer(client, probe, headers=headers, seconds=seconds) for probe in probes]
        return tuple(await asyncio.gather(*sent))
    finally:
        await client.aclose()


async def _answer(
    client: "httpx2.AsyncClient", probe: Probe, *, headers: Mapping[str, str], seconds: float
) -> Answer:
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            request = client.build_request(
                "GET" if probe.body is None else "POST",
                probe.address,
                headers={"Accept": "application/json", **headers},
                json=probe.body,
            )
            async with open_response(client, request) as response:
                await receive_body(response, body.extend, limit_bytes=MOST_BYTES)
    except TimeoutError:
        return Answer(problem=f"no answer within {seconds:.1f} seconds")
    except NoConnection as problem:
        return Answer(problem=str(problem))
    except BrokenOff as problem:
        return Answer(problem=f"the connection broke off ({problem})")
    except TooLarge as problem:
        return Answer(problem=str(problem) or f"the answer is larger than {MOST_BYTES} bytes")
    location = headers_of(response).get("location", "")[:MOST_LOCATION]
    return Answer(status=response.status_code, json=json_value(bytes(body)), location=location)


def is_list(answer: Answer) -> bool:
    """True if a response is a list of models.

    Some servers answer every path with status 200, so the status shows nothing.
    """
    found = answer.json
    listed = found.get("data", found.get("models")) if isinstance(found, dict) else found
    return 200 <= answer.status < 300 and isinstance(listed, list)


def entries_of(listed: Any) -> list[Mapping[str, Any]]:
    """Return the entries of a list of models, whatever format the server uses."""
    if isinstance(listed, dict):
        listed = listed.get("data", listed.get("models"))
    entries = listed if isinstance(listed, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def name_of(entry: Mapping[str, Any]) -> str:
    """Return the name by which requests call a listed model, or ""."""
    name = entry.get("id") or entry.get("name") or entry.get("model")
    return name if isinstance(name, str) else ""


def is_called(name: str, model: str) -> bool:
    """True if a request for `model` reaches the listed model with this name."""
    return name in (model, f"{model}:latest", f"models/{model}")
