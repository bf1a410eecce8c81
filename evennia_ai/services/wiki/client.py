"""Asks a wiki in the words of its API: reads its answers, logs in, carries tokens, goes on.

https://www.mediawiki.org/wiki/API:Main_page. Lives in the bridge's thread. What a wiki answers is
JSON whose form nobody promises: each reader gives what is there in the form that was asked for, and
nothing for the rest. Failures are values (`WikiRefusal`) up to `WikiClient`, whose errors never
hold the password, a token or a cookie.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode, urlsplit

from evennia_ai.engine.knowledge.pages.page import BackendError
from evennia_ai.services.net.http import (
    BrokenOff,
    FailedAttempt,
    NoConnection,
    TooLarge,
    answered,
    headers_of,
    http_client,
    json_object,
    persistently,
    receive,
    retry_after_seconds,
)
from evennia_ai.services.wiki.site import Site

if TYPE_CHECKING:
    import httpx2

_AGAIN_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNTOUCHED_STATUS: Final = frozenset({429, 503})
_AGAIN_CODES: Final = frozenset({"maxlag", "ratelimited"})
"""The wiki's own words for "later": a database that lags, somebody who asks too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiRefusal(FailedAttempt):
    """Why there is no answer.

    `code` is the wiki's own name of the problem, "" where the problem is another. `untouched` says
    that surely nothing was changed.
    """

    why: str
    code: str = ""
    untouched: bool = False


def read_answer(
    status: int, headers: Mapping[str, str], body: bytes
) -> dict[str, Any] | WikiRefusal:
    """The JSON object of an answer, or why it is none; `headers` have names in small letters."""
    wait = retry_after_seconds(headers)
    answer = json_object(body)
    problem = answer.get("error") if answer is not None else None
    if isinstance(problem, dict):
        return _refused(problem, wait)
    if 300 <= status < 400:
        target = urlsplit(headers.get("location", "")).netloc or "another address"
        return WikiRefusal(
            why=f"sends us on to {target}; put the address it really has in the setting"
        )
    if status != 200:
        return WikiRefusal(
            why=f"answered with status {status}",
            again=status in _AGAIN_STATUS,
            untouched=status in _UNTOUCHED_STATUS or 400 <= status < 500,
            after_seconds=wait,
        )
    if answer is None:
        return WikiRefusal(
            why="answered with something that is no JSON; its address ends in api.php"
        )
    return answer


def part(answer: Any, *path: str) -> dict[str, Any]:
    """The object at a path, an empty one where there is none."""
    for step in path:
        answer = answer.get(step) if isinstance(answer, dict) else None
    return answer if isinstance(answer, dict) else {}


def listed(answer: Any, *path: str) -> list[dict[str, Any]]:
    """The objects of the list at a path."""
    found = part(answer, *path[:-1]).get(path[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(answer: Mapping[str, Any], name: str) -> str:
    """A text, "" where it is none."""
    found = answer.get(name)
    return found if isinstance(found, str) else ""


def number(answer: Mapping[str, Any], name: str) -> int:
    """A whole number, 0 where it is none."""
    found = answer.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _refused(problem: dict[str, Any], wait: float | None) -> WikiRefusal:
    code = text(problem, "code")
    said = text(problem, "info") or "no reason given"
    return WikiRefusal(
        why=f"refused: {said}",
        code=code or "unknown",
        again=code in _AGAIN_CODES,
        untouched=True,
        after_seconds=wait,
    )


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
    ) -> dict[str, Any] | WikiRefusal:
        """What the wiki answers in the end.

        A request that `changes` something is sent again only where surely nothing came of it.
        """

        async def attempt() -> dict[str, Any] | WikiRefusal:
            outcome = await self._once({**_ALWAYS, **asked}, in_body=changes or in_body)
            if not isinstance(outcome, WikiRefusal) or outcome.untouched or not changes:
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

    async def _once(
        self, asked: Mapping[str, str], *, in_body: bool
    ) -> dict[str, Any] | WikiRefusal:
        try:
            async with self._places, asyncio.timeout(self._site.request_seconds):
                return await self._sent(asked, in_body=in_body)
        except TimeoutError:
            limit = f"{self._site.request_seconds:g} seconds"
            return WikiRefusal(
                why=f"was silent for {limit}; see whether it is overloaded", again=True
            )
        except (NoConnection, BrokenOff) as problem:
            return _unreachable(problem)
        except TooLarge as problem:
            limit = f"answered with more than {MAX_ANSWER_BYTES:,} bytes"
            return WikiRefusal(
                why="answered in too many small pieces" if problem.problem else limit
            )

    async def _sent(
        self, asked: Mapping[str, str], *, in_body: bool
    ) -> dict[str, Any] | WikiRefusal:
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


def _unreachable(problem: NoConnection | BrokenOff) -> WikiRefusal:
    kind = problem.kind if isinstance(problem, NoConnection) else str(problem)
    connected = "Connect" not in kind
    what = "broke off the connection" if connected else "cannot be reached"
    return WikiRefusal(
        why=f"{what} ({kind}); see whether it runs and whether its address is right",
        again=True,
        untouched=not connected,
    )


MOST_TITLES: Final = 50
"""Titles or revisions in one request; more are for accounts with special rights."""

MOST_CONTINUED: Final = 200
"""Answers that one question may be continued over."""

SEVERAL: Final = "\x1f"
"""Stands before and between several values; the usual `|` may be in a value."""

UNKNOWN: Final = "it is not known whether the page was written: look at it first"

_LOGGED_OUT: Final = frozenset({"assertuserfailed", "assertbotfailed", "readapidenied"})
_STALE_TOKEN: Final = "badtoken"  # noqa: S105 - the API's word, no password


class WikiError(BackendError):
    """A wiki gave no answer; `code` is its own name of the problem, "" where it said nothing."""

    def __init__(self, site: Site, why: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(
            f"knowledge base '{site.key}': the wiki at {site.host} {site.password.quoted(why)}"
        )


class WikiClient:
    """One wiki, asked by one account; it belongs to the loop that made it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._transport = Transport(site)
        self._entering = asyncio.Lock()
        self._logged_in = False
        self._token = ""

    async def ask(self, **asked: str) -> dict[str, Any]:
        """The answer to a question.

        Raises:
            WikiError: there is none; the text says why and what to do.
        """
        return self._taken(await self._as_user(asked, changes=False))

    def ask_on(self, **asked: str) -> "aclosing[AsyncGenerator[dict[str, Any]]]":
        """The answers to a question whose answer may come in parts, to be read in a block."""
        return aclosing(self._parts(asked))

    async def _parts(self, asked: dict[str, str]) -> AsyncGenerator[dict[str, Any]]:
        further: dict[str, str] = {}
        for _ in range(MOST_CONTINUED):
            answer = await self.ask(**(asked | further))
            yield answer
            before, further = further, {key: str(one) for key, one in _continued(answer)}
            if not further:
                return
            if further == before:
                raise WikiError(self.site, "goes on in circles; its API cannot be used so")
        raise WikiError(self.site, f"has more to say than {MOST_CONTINUED} answers hold")

    async def change(self, **asked: str) -> dict[str, Any]:
        """What came of a request that changes something; it is given the token that takes.

        Raises:
            WikiError: it was refused, or it is not known what came of it.
        """
        outcome = await self._with_token(asked)
        if isinstance(outcome, WikiRefusal) and outcome.code == _STALE_TOKEN:
            self._token = ""
            outcome = await self._with_token(asked)
        if isinstance(outcome, WikiRefusal) and not outcome.untouched:
            raise WikiError(self.site, f"{outcome.why}; {UNKNOWN}")
        return self._taken(outcome)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _with_token(self, asked: Mapping[str, str]) -> dict[str, Any] | WikiRefusal:
        if not self._token:
            answer = await self.ask(action="query", meta="tokens", type="csrf")
            self._token = text(part(answer, "query", "tokens"), "csrftoken")
        return await self._as_user({**asked, "token": self._token}, changes=True)

    async def _as_user(
        self, asked: Mapping[str, str], *, changes: bool
    ) -> dict[str, Any] | WikiRefusal:
        """The answer to who we are there: logged in, where there is somebody to log in."""
        if not self.site.user:
            return await self._transport.answer(asked, changes=changes)
        mine = {**asked, "assert": "user"}
        if refused := await self._entered():
            return refused
        outcome = await self._transport.answer(mine, changes=changes)
        if isinstance(outcome, WikiRefusal) and outcome.code in _LOGGED_OUT and not changes:
            self._logged_in, self._token = False, ""
            return await self._entered() or await self._transport.answer(mine)
        return outcome

    async def _entered(self) -> WikiRefusal | None:
        async with self._entering:
            if not self._logged_in:
                refused = await self._log_in()
                self._logged_in = refused is None
                return refused
        return None

    async def _log_in(self) -> WikiRefusal | None:
        """Log in with a bot password (Special:BotPasswords)."""
        wanted = {"action": "query", "meta": "tokens", "type": "login"}
        answer = await self._transport.answer(wanted)
        if isinstance(answer, WikiRefusal):
            return answer
        login = {
            "action": "login",
            "lgname": self.site.user,
            "lgpassword": self.site.password.reveal(),
            "lgtoken": text(part(answer, "query", "tokens"), "logintoken"),
        }
        outcome = await self._transport.answer(login, changes=True)
        if isinstance(outcome, WikiRefusal):
            return outcome
        said = part(outcome, "login")
        if text(said, "result") == "Success":
            return None
        reason = text(said, "reason") or text(said, "result")
        return WikiRefusal(
            why=f"does not let '{self.site.user}' in: {reason}; check the bot's name and password",
            code="login",
            untouched=True,
        )

    def _taken(self, outcome: dict[str, Any] | WikiRefusal) -> dict[str, Any]:
        if isinstance(outcome, WikiRefusal):
            raise WikiError(self.site, outcome.why, code=outcome.code)
        return outcome


def several(values: Iterable[str]) -> str:
    """Values of one parameter as the API takes them, whatever letters they have."""
    return "".join(f"{SEVERAL}{value}" for value in values)


def _continued(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(part(answer, "continue").items())
