"""HTTP for models and wikis: one client, when to ask again, and how much of an answer is read.

Lives in the bridge's thread; httpx2 is imported there, on first use, because its import takes a
tenth of a second. Its exceptions hold the request, and with it a key or a password: they end here,
and nothing is chained to them. A `Retry-After` of the server is obeyed; without one the pauses
double. Chance stretches each, so that many who were turned away together do not come back together.

A server decides what it sends, and the size in bytes alone does not bound the work with it: chunks
cost far more than their bytes, so they are counted before they are worked on.
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
"""Characters of a `Retry-After` that are read; a date has 29."""

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0

_CONNECTIONS: Final = 1_000
_IDLE_CONNECTIONS: Final = 100


class NoConnection(Exception):  # noqa: N818 - says what happened
    """No answer came at all; the text says why, `kind` in one word. Never leaves who asked."""

    def __init__(self, kind: str, why: str) -> None:
        self.kind = kind
        super().__init__(why)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """Why one attempt came to nothing, in the fields that a room adds to these."""

    again: bool = False
    """True if it may be otherwise in a moment."""
    after_seconds: float | None = None
    """How long the server asks to wait, where it says so."""


def http_client(*, user_agent: str = USER_AGENT) -> "httpx2.AsyncClient":
    """A client without limits of time (its users have their own); proxies as the environment says.

    It follows no redirect: a key would go to another server.
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
async def answered(
    client: "httpx2.AsyncClient", request: "httpx2.Request"
) -> AsyncIterator["httpx2.Response"]:
    """The answer to a request, its body unread; it is closed behind the block.

    Raises:
        NoConnection: there is none.
    """
    try:
        response = await client.send(request, stream=True)
    except Exception as problem:  # of httpx2, TLS or the system; none may be chained, see above
        raise no_connection(problem) from None
    try:
        yield response
    finally:
        await response.aclose()


def headers_of(response: "httpx2.Response") -> dict[str, str]:
    """The headers of an answer by their names in small letters."""
    return {name.lower(): value for name, value in response.headers.items()}


def is_address(value: str) -> bool:
    """True if it is the address of a server and nothing else: no name, no password, no query."""
    try:
        parts = urlsplit(value)
        known = parts.scheme in ("http", "https") and bool(parts.hostname)
        return known and parts.username is None and parts.password is None and not parts.query
    except ValueError:
        return False


async def persistently(
    attempt: Callable[[], Awaitable[T]], *, max_retries: int, may_pause: Callable[[float], bool]
) -> T:
    """What `attempt` comes to in the end; one that may be worth another returns a `FailedAttempt`.

    `may_pause` says whether there is so many seconds' time before the next one.
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
    """How long to wait after the attempt number `retried`; `chance` is from 0 to 1."""
    if after_seconds is not None:
        return after_seconds * (1 + chance / 10)
    longest = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(retried, 10))
    return longest * (1 + chance) / 2


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


def no_connection(problem: Exception) -> NoConnection:
    """Return why no answer came, in the system's words if it has any (refused, certificate, ...).

    Of any other error only the kind is told: its text may quote the request.
    """
    kind = type(problem).__name__
    link: BaseException | None = problem
    while link is not None:
        if isinstance(link, ConnectionError) and link.errno:
            # asyncio has put its own words over it
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
"""What a failure of the transport means of which the system says nothing."""


LONGEST_REASON_BYTES: Final = 65_536
"""How much of the body of a failure is read."""

MOST_REASON_CHUNKS: Final = 1_024
"""In how many chunks it may come."""

CHUNKS_BETWEEN: Final = 32
"""After so many chunks that were there at once, other replies have their turn."""

BYTES_BETWEEN: Final = 8_192
"""And after so many bytes: thousands of events may stand in one chunk."""

MOST_CHUNKS: Final = 100_000
"""Chunks in which one body comes."""

CHUNKS_OF_ANY_SIZE: Final = 1_024
CHUNK_BYTES: Final = 32
"""How large the others are on the average: an event with one word in it is larger."""


class BrokenOff(Exception):  # noqa: N818 - says what happened
    """The connection ended in the middle of a body; never leaves who asked."""


class TooLarge(Exception):  # noqa: N818
    """A body is over a limit; never leaves who asked.

    `problem` says over which, "" where it is the one of bytes.
    """

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        super().__init__(problem)


async def receive(
    response: "httpx2.Response", take: Callable[[bytes], None], *, limit_bytes: int
) -> None:
    """Hand over what comes, until the end.

    Raises:
        BrokenOff: the connection ended before the body did.
        TooLarge: there is more than `limit_bytes`, or more chunks than a body may have; it is read
            no further.
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
    """The beginning of the body of a failure, however long it is.

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
    """Return what a server sent as text: UTF-8, as the standards want it, or else Windows-1252.

    A broken character among others of UTF-8 becomes U+FFFD, and the others stay.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        text = body.decode("utf-8", "replace")
    is_utf8 = any(not one.isascii() and one != "\ufffd" for one in text)
    return text if is_utf8 else body.decode("cp1252", "replace")


def json_value(body: bytes | str) -> Any:
    """Return the JSON value in `body`, None where there is none."""
    try:
        return json.loads(body)
    except UnicodeDecodeError as error:
        return json_value(text_in(error.object))
    except (ValueError, RecursionError):
        return None


def json_object(body: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object in `body`, None where there is none."""
    value = json_value(body)
    return value if isinstance(value, dict) else None


def _chunks_of(response: "httpx2.Response") -> "aclosing[AsyncGenerator[bytes]]":
    """The chunks of a body, to be read in a block: no longer than that is anything of them open.

    What is left open is ended by whichever thread's garbage collector finds it, in any order.
    """
    chunks: Any = response.aiter_bytes()  # an asynchronous generator, which httpx2 does not say
    return aclosing(chunks)


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    try:
        return await anext(chunks, None)
    except Exception as problem:  # the transport's own errors; none may be chained
        raise BrokenOff(type(problem).__name__) from None


def _chunk_problem(count: int, *, received_bytes: int) -> str:
    """Why a body comes in too many chunks, "" where it does not."""
    if count > MOST_CHUNKS:
        return f"the reply comes in more than {MOST_CHUNKS} chunks"
    if count > CHUNKS_OF_ANY_SIZE + received_bytes // CHUNK_BYTES:
        return f"the reply comes in chunks of less than {CHUNK_BYTES} bytes"
    return ""
