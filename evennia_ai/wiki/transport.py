"""One wiki over HTTP: requests with their limits, asked again where that is worth it.

Lives in the bridge's thread. Failures are values here: the HTTP library's own exceptions hold the
request, and with it a password, so nothing may ever be chained to them.
"""

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from evennia_ai.llm.retries import pause_seconds
from evennia_ai.wiki.answers import Refused, read_answer
from evennia_ai.wiki.site import Site

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
        self._client: Any = None
        self._places = asyncio.Semaphore(_CONNECTIONS)

    async def answer(
        self, asked: Mapping[str, str], *, changes: bool = False, in_body: bool = False
    ) -> dict[str, Any] | Refused:
        """What the wiki answers in the end.

        A request that `changes` something is sent again only where surely nothing came of it.
        """
        for retried in range(self._site.max_retries + 1):
            outcome = await self._once({**_ALWAYS, **asked}, in_body=changes or in_body)
            if not isinstance(outcome, Refused):
                return outcome
            pause = pause_seconds(
                retried, after_seconds=outcome.after_seconds, chance=random.random()
            )
            worth_it = outcome.again and (outcome.untouched or not changes)
            if retried == self._site.max_retries or not worth_it or pause > LONGEST_PAUSE_SECONDS:
                return outcome
            await asyncio.sleep(pause)
        raise AssertionError("there is always a first request")

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
        except Exception as problem:  # the HTTP library's errors, whose names depend on its version
            return _unreachable(problem)

    async def _sent(self, asked: Mapping[str, str], *, in_body: bool) -> dict[str, Any] | Refused:
        client = self._connected()
        written = urlencode(asked)
        if in_body or len(written) > LONGEST_ADDRESS:
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            request = client.build_request("POST", self._site.api, content=written, headers=headers)
        else:
            request = client.build_request("GET", f"{self._site.api}?{written}")
        response = await client.send(request, stream=True)
        try:
            return await _received(response)
        finally:
            await response.aclose()

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _http_client(self._site.user_agent)
        return self._client


async def _received(response: Any) -> dict[str, Any] | Refused:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            return Refused(why=f"answered with more than {MAX_ANSWER_BYTES:,} bytes")
    headers = {name.lower(): value for name, value in response.headers.items()}
    return read_answer(response.status_code, headers, bytes(body))


def _http_client(user_agent: str) -> Any:
    """An HTTP client that follows no redirect: a password would go to another machine.

    It is the one that the model library brings along, under whichever name that has it.
    """
    import openai

    return openai.DefaultAsyncHttpxClient(
        timeout=None,
        follow_redirects=False,
        headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
    )


def _unreachable(problem: Exception) -> Refused:
    kind = type(problem).__name__
    connected = "Connect" not in kind
    what = "broke off the connection" if connected else "cannot be reached"
    return Refused(
        why=f"{what} ({kind}); see whether it runs and whether its address is right",
        again=True,
        untouched=not connected,
    )
