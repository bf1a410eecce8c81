"""One wiki over HTTP: requests with their limits, asked again where that is worth it.

Lives in the bridge's thread. Failures are values here: the HTTP library's own exceptions hold the
request, and with it a password, so nothing may ever be chained to them.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from evennia_ai.net.bodies import BrokenOff, TooLarge, receive
from evennia_ai.net.http import NoConnection, answered, headers_of, http_client, persistently
from evennia_ai.wiki.answers import Refused, read_answer
from evennia_ai.wiki.site import Site

if TYPE_CHECKING:
    import httpx2

MAX_ANSWER_BYTES: Final = 9_000_000
"""Of one answer; a MediaWiki bounds the texts in one by 8 MB itself."""

LONGEST_ADDRESS: Final = 1_500
"""Characters of a question that are put into the address; longer ones go in the body."""

LONGEST_PAUSE_SECONDS: Final = 20.0
MAX_LAG_SECONDS: Final = 5
"""A wiki whose database is further behind is left alone for a moment, as its makers ask."""

_ALWAYS: Final = {"format": "json", "formatversion": "2", "maxlag": str(MAX_LAG_SECONDS)}
_CONNECTIONS: Final = 3


class Transport:
    """The connections to a site; it belongs to the loop that made it."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._client: httpx2.AsyncClient | None = None
        self._places = asyncio.Semaphore(_CONNECTIONS)

    async def answer(
        self, asked: Mapping[str, str], *, changes: bool = False, in_body: bool = False
    ) -> dict[str, Any] | Refused:
        """What the wiki answers in the end.

        A request that `changes` something is sent again only where surely nothing came of it.
        """

        async def attempt() -> dict[str, Any] | Refused:
            outcome = await self._once({**_ALWAYS, **asked}, in_body=changes or in_body)
            if not isinstance(outcome, Refused) or outcome.untouched or not changes:
                return outcome
            return replace(outcome, again=False)

        return await persistently(
            attempt,
            max_retries=self._site.max_retries,
            may_pause=lambda pause: pause <= LONGEST_PAUSE_SECONDS,
        )

    async def close(self) -> None:
        """Close the connections, if there are any."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _once(self, asked: Mapping[str, str], *, in_body: bool) -> dict[str, Any] | Refused:
        try:
            async with self._places, asyncio.timeout(self._site.request_seconds):
                return await self._sent(asked, in_body=in_body)
        except TimeoutError:
            limit = f"{self._site.request_seconds:g} seconds"
            return Refused(why=f"was silent for {limit}; see whether it is overloaded", again=True)
        except (NoConnection, BrokenOff) as problem:
            return _unreachable(problem)
        except TooLarge as problem:
            limit = f"answered with more than {MAX_ANSWER_BYTES:,} bytes"
            return Refused(why="answered in too many small pieces" if problem.problem else limit)

    async def _sent(self, asked: Mapping[str, str], *, in_body: bool) -> dict[str, Any] | Refused:
        client = self._connected()
        written = urlencode(asked)
        if in_body or len(written) > LONGEST_ADDRESS:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            request = client.build_request("POST", self._site.api, content=written, headers=headers)
        else:
            request = client.build_request("GET", f"{self._site.api}?{written}")
        body = bytearray()
        async with answered(client, request) as response:
            await receive(response, body.extend, limit_bytes=MAX_ANSWER_BYTES)
        return read_answer(response.status_code, headers_of(response), bytes(body))

    def _connected(self) -> "httpx2.AsyncClient":
        if self._client is None:
            self._client = http_client(user_agent=self._site.user_agent)
        return self._client


def _unreachable(problem: NoConnection | BrokenOff) -> Refused:
    kind = problem.kind if isinstance(problem, NoConnection) else str(problem)
    connected = "Connect" not in kind
    what = "broke off the connection" if connected else "cannot be reached"
    return Refused(
        why=f"{what} ({kind}); see whether it runs and whether its address is right",
        again=True,
        untouched=not connected,
    )
