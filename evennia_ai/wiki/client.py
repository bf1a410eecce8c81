"""Asks a wiki in the words of its API: logs in, carries tokens, goes on where an answer does.

https://www.mediawiki.org/wiki/API:Main_page. Lives in the bridge's thread; errors never hold the
password, a token or a cookie.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

from evennia_ai.knowledge.backends import BackendError
from evennia_ai.wiki.answers import Refused, part, text
from evennia_ai.wiki.site import Site
from evennia_ai.wiki.transport import Transport

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
        super().__init__(f"knowledge base '{site.key}': the wiki at {site.host} {site.quoted(why)}")


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

    async def ask_on(self, **asked: str) -> AsyncIterator[dict[str, Any]]:
        """The answers to a question whose answer may come in parts."""
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
        if isinstance(outcome, Refused) and outcome.code == _STALE_TOKEN:
            self._token = ""
            outcome = await self._with_token(asked)
        if isinstance(outcome, Refused) and not outcome.untouched:
            raise WikiError(self.site, f"{outcome.why}; {UNKNOWN}")
        return self._taken(outcome)

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def _with_token(self, asked: Mapping[str, str]) -> dict[str, Any] | Refused:
        if not self._token:
            answer = await self.ask(action="query", meta="tokens", type="csrf")
            self._token = text(part(answer, "query", "tokens"), "csrftoken")
        return await self._as_user({**asked, "token": self._token}, changes=True)

    async def _as_user(
        self, asked: Mapping[str, str], *, changes: bool
    ) -> dict[str, Any] | Refused:
        """The answer to who we are there: logged in, where there is somebody to log in."""
        if not self.site.user:
            return await self._transport.answer(asked, changes=changes)
        mine = {**asked, "assert": "user"}
        if refused := await self._entered():
            return refused
        outcome = await self._transport.answer(mine, changes=changes)
        if isinstance(outcome, Refused) and outcome.code in _LOGGED_OUT and not changes:
            self._logged_in, self._token = False, ""
            return await self._entered() or await self._transport.answer(mine)
        return outcome

    async def _entered(self) -> Refused | None:
        async with self._entering:
            if not self._logged_in:
                refused = await self._log_in()
                self._logged_in = refused is None
                return refused
        return None

    async def _log_in(self) -> Refused | None:
        """Log in with a bot password (Special:BotPasswords)."""
        wanted = {"action": "query", "meta": "tokens", "type": "login"}
        answer = await self._transport.answer(wanted)
        if isinstance(answer, Refused):
            return answer
        login = {
            "action": "login",
            "lgname": self.site.user,
            "lgpassword": self.site.password.reveal(),
            "lgtoken": text(part(answer, "query", "tokens"), "logintoken"),
        }
        outcome = await self._transport.answer(login, changes=True)
        if isinstance(outcome, Refused):
            return outcome
        said = part(outcome, "login")
        if text(said, "result") == "Success":
            return None
        reason = text(said, "reason") or text(said, "result")
        return Refused(
            why=f"does not let '{self.site.user}' in: {reason}; check the bot's name and password",
            code="login",
            untouched=True,
        )

    def _taken(self, outcome: dict[str, Any] | Refused) -> dict[str, Any]:
        if isinstance(outcome, Refused):
            raise WikiError(self.site, outcome.why, code=outcome.code)
        return outcome


def several(values: Iterable[str]) -> str:
    """Values of one parameter as the API takes them, whatever letters they have."""
    return "".join(f"{SEVERAL}{value}" for value in values)


def _continued(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return list(part(answer, "continue").items())
