"""A client for the API of a MediaWiki (https://www.mediawiki.org/wiki/API:Main_page).

It reads answers, logs in, gets tokens and follows continuations, all in the bridge's thread. The
form of an answer is not guaranteed, so each reader returns the parts that have the expected form
and ignores the rest. Below `WikiClient`, failures are values (`WikiRefusal`). Errors never contain
the password, a token or a cookie.
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
    headers_of,
    http_client,
    json_object,
    open_response,
    receive_body,
    retry_after_seconds,
    retry_attempts,
)
from evennia_ai.services.wiki.site import Site

if TYPE_CHECKING:
    import httpx2

_AGAIN_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_UNTOUCHED_STATUS: Final = frozenset({429, 503})
_AGAIN_CODES: Final = frozenset({"maxlag", "ratelimited"})
"""Error codes of a wiki that mean "try later": its database lags, or requests come too often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WikiRefusal(FailedAttempt):
    """The reason why a request to a wiki got no answer."""

    why: str
    code: str = ""
    """The wiki's error code; "" if the failure has none."""
    untouched: bool = False
    """True if the failed request certainly changed nothing."""


def read_answer(
    status: int, headers: Mapping[str, str], body: bytes
) -> dict[str, Any] | WikiRefusal:
    """Return the JSON object in an answer, or the reason why there is none.

    Names of `headers` must be in lower case.
    """
    wait = retry_after_seconds(headers)
    answer = json_object(body)
    problem = answer.get("error") if answer is not None else None
    if isinstance(problem, dict):
        return _refused(problem, wait)
    if 300 <= status < 400:
        target = urlsplit(headers.get("location", "")).netloc or "another address"
        return WikiRefusal(why=f"redirects to {target}; use that address in the setting")
    if status != 200:
        return WikiRefusal(
            why=f"answered with status {status}",
            again=status in _AGAIN_STATUS,
            untouched=status in _UNTOUCHED_STATUS or 400 <= status < 500,
            after_seconds=wait,
        )
    if answer is None:
        return WikiRefusal(why="did not answer with JSON; its address must end in api.php")
    return answer


def object_at(answer: Any, *path: str) -> dict[str, Any]:
    """Return the object at a path of members; empty if there is none."""
    for step in path:
        answer = answer.get(step) if isinstance(answer, dict) else None
    return answer if isinstance(answer, dict) else {}


def objects_at(answer: Any, *path: str) -> list[dict[str, Any]]:
    """Return the objects in the list at a path of members; empty if there is none."""
    found = object_at(answer, *path[:-1]).get(path[-1])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(answer: Mapping[str, Any], name: str) -> str:
    """Return the text of a member; "" if its value is not a text."""
    found = answer.get(name)
    return found if isinstance(found, str) else ""


def number(answer: Mapping[str, Any], name: str) -> int:
    """Return the whole number of a member; 0 if its value is not one."""
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
"""The most bytes of one answer. A MediaWiki limits the texts of one answer to 8 MB."""

LONGEST_ADDRESS: Final = 1_500
"""The longest request that is sent in the address. Longer ones are sent in the body."""

LONGEST_PAUSE_SECONDS: Final = 20.0
MAX_LAG_SECONDS: Final = 5
"""The longest lag of the wiki's database, in which requests are still sent.

If the lag is longer, the client waits, as MediaWiki's manual asks.
"""

_ALWAYS: Final = {"format": "json", "formatversion": "2", "maxlag": str(MAX_LAG_SECONDS)}
_CONNECTIONS: Final = 3


class Transport:
    """The connections to one wiki. They belong to the asyncio loop that opened them."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._client: httpx2.AsyncClient | None = None
        self._places = asyncio.Semaphore(_CONNECTIONS)

    async def answer(
        self, asked: Mapping[str, str], *, changes: bool = False, in_body: bool = False
    ) -> dict[str, Any] | WikiRefusal:
        """Send a request, with retries, and return the final answer.

        A request that changes something (`changes`) is repeated only if the failed one certainly
        had no effect.
        """

        async def attempt() -> dict[str, Any] | WikiRefusal:
            outcome = await self._once({**_ALWAYS, **asked}, in_body=changes or in_body)
            if not isinstance(outcome, WikiRefusal) or outcome.untouched or not changes:
                return outcome
            return replace(outcome, again=False)

        return await retry_attempts(
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
                why=f"did not answer for {limit}; check whether it is overloaded", again=True
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
        async with open_response(client, request) as response:
            await receive_body(response, body.extend, limit_bytes=MAX_ANSWER_BYTES)
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
        why=f"{what} ({kind}); check whether it runs and whether its address is right",
        again=True,
        untouched=not connected,
    )


MOST_TITLES: Final = 50
"""The most titles or revisions that a normal account may name in one request."""

MOST_CONTINUED: Final = 200
"""The most continuations of one answer that are followed."""

SEVERAL: Final = "\x1f"
"""The character that separates several values. Unlike `|`, it cannot be part of a value."""

UNKNOWN: Final = "it is not known whether the page was written: look at it first"

_LOGGED_OUT: Final = frozenset({"assertuserfailed", "assertbotfailed", "readapidenied"})
_STALE_TOKEN: Final = "badtoken"  # noqa: S105 - the API's word, no password


class WikiError(BackendError):
    """A wiki gave no answer.

    `code` is the wiki's error code, or "".
    """

    def __init__(self, site: Site, why: str, *, code: str = "") -> None:
        self.code = code
        super().__init__(
            f"knowledge base '{site.key}': the wiki at {site.host} {site.password.quote(why)}"
        )


class WikiClient:
    """A client for one wiki and one account. It belongs to the asyncio loop that made it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._transport = Transport(site)
        self._entering = asyncio.Lock()
        self._logged_in = False
        self._token = ""

    async def ask(self, **asked: str) -> dict[str, Any]:
        """Return the answer to a request.

        Raises:
            WikiError: the wiki gave no answer; the text says why and what to do.
        """
        return self._taken(await self._as_user(asked, changes=False))

    def ask_on(self, **asked: str) -> "aclosing[AsyncGenerator[dict[str, Any]]]":
        """Yield an iterator over an answer and all its continuations (`async with`)."""
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
                raise WikiError(
                    self.site, "pointed twice to the same next part of an answer; stopped reading"
                )
        raise WikiError(
            self.site, f"sent more than {MOST_CONTINUED} parts of an answer; stopped reading"
        )

    async def change(self, **asked: str) -> dict[str, Any]:
        """Send a request that changes something, with the token that the wiki requires for it.

        Raises:
            WikiError: the wiki refused the request, or its effect is not known.
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
            self._token = text(object_at(answer, "query", "tokens"), "csrftoken")
        return await self._as_user({**asked, "token": self._token}, changes=True)

    async def _as_user(
        self, asked: Mapping[str, str], *, changes: bool
    ) -> dict[str, Any] | WikiRefusal:
        """Send a request as the configured user. Log in first if that is needed."""
        if not self.site.user:
            return await self._transport.answer(asked, changes=changes)
        mine = {**asked, "assert": "user"}
        if refused := await self._log_in_once():
            return refused
        outcome = await self._transport.answer(mine, changes=changes)
        if isinstance(outcome, WikiRefusal) and outcome.code in _LOGGED_OUT and not changes:
            self._logged_in, self._token = False, ""
            return await self._log_in_once() or await self._transport.answer(mine)
        return outcome

    async def _log_in_once(self) -> WikiRefusal | None:
        async with self._entering:
            if not self._logged_in:
                refused = await self._log_in()
                self._logged_in = refused is None
                return refused
        return None

    async def _log_in(self) -> WikiRefusal | None:
        """Log in with a bot's name and password (Special:BotPasswords)."""
        wanted = {"action": "query", "meta": "tokens", "type": "login"}
        answer = await self._transport.answer(wanted)
        if isinstance(answer, WikiRefusal):
            return answer
        login = {
            "action": "login",
            "lgname": self.site.user,
            "lgpassword": self.site.password.reveal(),
            "lgtoken": text(object_at(answer, "query", "tokens"), "logintoken"),
        }
        outcome = await self._transport.answer(login, changes=True)
        if isinstance(outcome, WikiRefusal):
            return outcome
        said = object_at(outcome, "login")
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


def join_values(values: Iterable[str]) -> str:
    """Return several values as one parameter, whatever characters the values contain."""
    return "".join(f"{SEVERAL}{value}" for value in values)


def _continued(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(object_at(answer, "continue").items())
