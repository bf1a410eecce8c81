"""What lies between a provider's library and the network: limits, and answers that are no reply.

The libraries read the whole body of an answer with a status of failure, however long it is. A hook
in their HTTP client comes before them: it reads the beginning and raises `TurnedDown`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from evennia_ai.llm.reply_bounds import chunk_problem

LONGEST_REASON_BYTES: Final = 65_536
"""How much of the body of a failure is read."""

MOST_REASON_CHUNKS: Final = 1_024
"""In how many chunks it may come."""

CHUNKS_BETWEEN: Final = 32
"""After so many chunks that were there at once, other replies have their turn."""

BYTES_BETWEEN: Final = 8_192
"""And after so many bytes: thousands of events may stand in one chunk."""


class TurnedDown(Exception):  # noqa: N818 - says what the server did
    """An answer with a status that is not of success; never leaves the model's own client."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        super().__init__(f"status {status}")


class BrokenOff(Exception):  # noqa: N818
    """The connection ended in the middle of a body; never leaves the model's own client."""


class TooLarge(Exception):  # noqa: N818
    """A body is over a limit; never leaves the model's own client.

    `problem` says over which, "" where it is the one of bytes.
    """

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        super().__init__(problem)


def http_client(library: Any) -> Any:
    """The HTTP client of a provider's library, with our hook.

    It follows no redirect: the key would go to another server. Time limits are not its business.
    """
    return library.DefaultAsyncHttpxClient(
        timeout=None,
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [_raise_for_status]},
    )


async def receive(response: Any, take: Callable[[bytes], None], *, limit_bytes: int) -> None:
    """Hand over what comes, until the end.

    Raises:
        BrokenOff: the connection ended before the body did.
        TooLarge: there is more than `limit_bytes`, or more chunks than a body may have; it is read
            no further.
    """
    left, count = limit_bytes, 0
    chunks = response.iter_bytes()
    while (chunk := await _next(chunks)) is not None:
        left, count = left - len(chunk), count + 1
        if left < 0:
            raise TooLarge
        if problem := chunk_problem(count, received_bytes=limit_bytes - left):
            raise TooLarge(problem)
        take(chunk[:BYTES_BETWEEN])
        for at in range(BYTES_BETWEEN, len(chunk), BYTES_BETWEEN):
            await asyncio.sleep(0)
            take(chunk[at : at + BYTES_BETWEEN])
        if count % CHUNKS_BETWEEN == 0:
            await asyncio.sleep(0)


async def _next(chunks: Any) -> bytes | None:
    try:
        chunk: bytes | None = await anext(chunks, None)
    except Exception as problem:  # the transport's own errors, of httpx by whichever name
        raise BrokenOff(type(problem).__name__) from None
    return chunk


async def _raise_for_status(response: Any) -> None:
    if response.is_success:
        return
    body = bytearray()
    chunks = response.aiter_bytes()
    for _ in range(MOST_REASON_CHUNKS):
        chunk = await anext(chunks, None)
        if chunk is None:
            break
        body += chunk
        if len(body) >= LONGEST_REASON_BYTES:
            break
    headers = {name.lower(): value for name, value in response.headers.items()}
    raise TurnedDown(response.status_code, headers, bytes(body[:LONGEST_REASON_BYTES]))
