"""HTTP for models and wikis: a client, retries, and limits on the size of responses.

It runs in the bridge's thread. httpx2 is imported there at first use, because the import takes a
tenth of a second. Its exceptions contain the request, and with it a key or a password. So they are
caught here, and no other error is chained to them.

A server's `Retry-After` is obeyed; without one, pauses double. Each pause gets a random part, so
that many refused clients do not return together.

A server decides what it sends. Many small chunks cost far more work than their bytes suggest, so
chunks are counted before they are processed.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from email.utils import mktime_tz, parsedate_tz
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")

USER_AGENT: Final = "evennia_ai"
LONGEST_HEADER: Final = 64
"""The most characters of a `Retry-After` header that are read. A date has 29."""

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0

_CONNECTIONS: Final = 1_000
_IDLE_CONNECTIONS: Final = 100


class NoConnection(Exception):  # noqa: N818 - says what happened
    """The server sent no response at all. Callers in this package catch it.

    The text says why, and `kind` says it in one word.
    """

    def __init__(self, kind: str, why: str) -> None:
        self.kind = kind
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """The reason why one attempt failed. Subclasses add fields."""

    again: bool = False
    """True if another attempt may succeed soon."""
    after_seconds: float | None = None
    """How many seconds the server asks to wait, or None."""


def http_client(*, user_agent: str = USER_AGENT) -> "httpx2.AsyncClient":
    """Return an HTTP client without time limits, because each caller sets its own.

    It uses the proxies of the environment. It follows no redirect, because a key would go to
    another server.
    """
    import httpx2

    limits = httpx2.Limits(
        max_connections=_CONNECTIONS, max_keepalive_connections=_IDLE_CONNECTIONS
    )
    return httpx2.AsyncClient(
        timeout=None,
        follow_redirects=False,
        limits=limits,
        headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
    )


@asynccontextmanager
async def open_response(
    client: "httpx2.AsyncClient", request: "httpx2.Request"
) -> AsyncIterator["httpx2.Response"]:
    """Send a request and return the response, with an unread body, as an `async with` context.

    Raises:
        NoConnection: the server sent no response.
    """
    try:
        response = await client.send(request, stream=True)
    except Exception as problem:  # any error of httpx2, TLS or the system
        raise no_connection(problem) from None
    try:
        yield response
    finally:
        await response.aclose()


def headers_of(response: "httpx2.Response") -> dict[str, str]:
    """Return the headers of a response, with names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def is_address(value: str) -> bool:
    """True if a text is a server's address without a name, password or query in it."""
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        return known and parts.username is None and parts.password is None and not parts.query
    except ValueError:
        return False


async def retry_attempts(
    attempt: Callable[[], Awaitable[T]], *, max_retries: int, may_pause: Callable[[float], bool]
) -> T:
    """Call `attempt` again while it returns a `FailedAttempt` that is worth another try.

    Args:
        may_pause: Returns True if there is time for a pause of this many seconds.

    Returns:
        The last outcome.
    """
    for retried in range(max_retries + 1):
        outcome = await attempt()
        if not isinstance(outcome, FailedAttempt) or not outcome.again or retried == max_retries:
            return outcome
        after_seconds = outcome.after_seconds
        pause = pause_seconds(retried, after_seconds=after_seconds, chance=random.random())
        if not may_pause(pause):
            return outcome
        await asyncio.sleep(pause)
    raise AssertionError("there is always a first attempt")


def pause_seconds(retried: int, *, after_seconds: float | None, chance: float) -> float:
    """Return the seconds to pause after an attempt.

    `chance` is a random number from 0 to 1, which lengthens the pause.
    """
    if after_seconds is not None:
        return after_seconds * (1 + chance / 10)
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(retried, 10))
    return longest * (1 + chance) / 2


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server asks to wait, or None.

    The header has a number or a date (RFC 9110, 10.2.3).

    Args:
        headers: The headers of the response, with names in lower case.
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
    """Return the seconds until an HTTP date, or None if the text is not a date."""
    try:
        moment = parsedate_tz(date)
        return None if moment is None else max(0.0, mktime_tz(moment) - time.time())
    except (ValueError, OverflowError):
        return None


def no_connection(problem: Exception) -> NoConnection:
    """Return the error for a failed connection, with the system's words if there are any.

    Of other errors only the class is named, because their text may quote the request.
    """
    kind = type(problem).__name__
    link: BaseException | None = problem
    while link is not None:
        if isinstance(link, ConnectionError) and link.errno:
            # asyncio replaces the system's text by its own, so the number is looked up.
            return NoConnection(kind, f"{kind}: {os.strerror(link.errno)}")
        if isinstance(link, OSError) and link.strerror:
            return NoConnection(kind, f"{kind}: {link.strerror}")
        link = link.__cause__ or link.__context__
    words = _KINDS.get(kind)
    return NoConnection(kind, f"{kind}: {words}" if words else kind)


_KINDS: Final = {
    "RemoteProtocolError": "what answers hung up, or speaks no HTTP (is it https?)",
    "ReadError": "the server hung up",
    "WriteError": "the server hung up",
}
"""What transport failures mean for which the system has no words."""


LONGEST_REASON_BYTES: Final = 65_536
"""The most bytes of an error response that are read."""

MOST_REASON_CHUNKS: Final = 1_024
"""The most chunks of an error response that are read."""

CHUNKS_BETWEEN: Final = 32
"""After this many chunks without waiting, other tasks get a turn."""

BYTES_BETWEEN: Final = 8_192
"""After this many bytes without waiting, other tasks get a turn.

One chunk may contain thousands of events.
"""

MOST_CHUNKS: Final = 100_000
"""The most chunks that one body may have."""

CHUNKS_OF_ANY_SIZE: Final = 1_024
CHUNK_BYTES: Final = 32
"""The lowest average size of chunks after the first CHUNKS_OF_ANY_SIZE.

Even an event with a single word is larger.
"""


class BrokenOff(Exception):  # noqa: N818 - says what happened
    """The connection ended inside a body. Callers in this package catch it."""


class TooLarge(Exception):  # noqa: N818
    """A body exceeds a limit. Callers in this package catch it.

    `problem` names the limit; "" means the limit of bytes.
    """

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        super().__init__(problem)


async def receive_body(
    response: "httpx2.Response", take: Callable[[bytes], None], *, limit_bytes: int
) -> None:
    """Call `take` with each part of a body, until the body ends.

    Raises:
        BrokenOff: the connection ended before the body did.
        TooLarge: the body has more than `limit_bytes` or too many chunks. The rest is not read.
    """
    left, count = limit_bytes, 0
    async with _chunks_of(response) as chunks:
        while (chunk := await _next(chunks)) is not None:
            left, count = left - len(chunk), count + 1
            if left < 0:
                raise TooLarge
            if problem := _chunk_problem(count, received_bytes=limit_bytes - left):
                raise TooLarge(problem)
            take(chunk[:BYTES_BETWEEN])
            for at in range(BYTES_BETWEEN, len(chunk), BYTES_BETWEEN):
                await asyncio.sleep(0)
                take(chunk[at : at + BYTES_BETWEEN])
            if count % CHUNKS_BETWEEN == 0:
                await asyncio.sleep(0)


async def reason_of(response: "httpx2.Response") -> bytes:
    """Return the start of an error response's body, which explains the error.

    Raises:
        BrokenOff: the connection ended before the body did.
    """
    body = bytearray()
    async with _chunks_of(response) as chunks:
        for _ in range(MOST_REASON_CHUNKS):
            chunk = await _next(chunks)
            if chunk is None:
                break
            body += chunk
            if len(body) >= LONGEST_REASON_BYTES:
                break
    return bytes(body[:LONGEST_REASON_BYTES])


def text_in(body: bytes) -> str:
    """Return a server's bytes as text.

    They are decoded as UTF-8, as the standards require, or else as Windows-1252. In text that is
    mostly UTF-8, a broken character becomes U+FFFD.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    is_utf8 = any(not one.isascii() and one != "\ufffd" for one in text)
    return text if is_utf8 else body.decode("cp1252", "replace")


def json_value(body: bytes | str) -> Any:
    """Return the JSON value in `body`, or None if it is not JSON."""
    try:
        return json.loads(body)
    except UnicodeDecodeError as error:
        return json_value(text_in(error.object))
    except (ValueError, RecursionError):
        return None


def json_object(body: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object in `body`, or None if it is something else."""
    value = json_value(body)
    return value if isinstance(value, dict) else None


def _chunks_of(response: "httpx2.Response") -> "aclosing[AsyncGenerator[bytes]]":
    """Return the chunks of a body as an `async with` context, which closes their generator.

    Otherwise the garbage collector would close it, in any thread and order.
    """
    # It is an asynchronous generator, though httpx2 does not declare it as one.
    chunks: Any = response.aiter_bytes()
    return aclosing(chunks)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except Exception as problem:  # Any error of the transport. The module explains `from None`.
        raise BrokenOff(type(problem).__name__) from None


def _chunk_problem(count: int, *, received_bytes: int) -> str:
    """Return why the chunks of a body are too many or too small, or ""."""
    if count > MOST_CHUNKS:
        return f"the reply comes in more than {MOST_CHUNKS} chunks"
    if count > CHUNKS_OF_ANY_SIZE + received_bytes // CHUNK_BYTES:
        return f"the reply comes in chunks of less than {CHUNK_BYTES} bytes"
    return ""
