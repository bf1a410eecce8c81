"""Intros of Wikipedia: a paragraph about something real, for grounding and nothing else.

Off unless the game names an address. Nothing waits for an encyclopedia longer than a few seconds.
"""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.knowledge.pages.page import TitleError, page_name
from evennia_ai.llm.replies.clean import SENTENCE_END, visible
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.wiki.client import WikiClient, WikiError, listed, number, part, text
from evennia_ai.wiki.site import Site

INTRO_CHARACTERS: Final = 1_500
INTRO_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intro:
    """The beginning of an article as plain text, and the article's title."""

    title: str
    text: str


class Wikipedia:
    """The encyclopedia at one address, such as https://en.wikipedia.org/w/api.php."""

    def __init__(self, api: str, bridge: AsyncBridge) -> None:
        self._site = replace(
            Site(key="wikipedia", api=api),
            request_seconds=INTRO_SECONDS,
            whole_seconds=INTRO_SECONDS,
            max_retries=1,
        )
        self._bridge = bridge
        self._client: WikiClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def intro(self, entity: str) -> Deferred[Intro | None]:
        """The intro of the article about `entity`, None where there is none; may fail as WikiError.

        A page that lists several meanings of a name is no article.
        """
        return self._bridge.run(lambda: self._intro(entity))

    async def _intro(self, entity: str) -> Intro | None:
        title = _title(entity)
        if not title:
            return None
        try:
            async with asyncio.timeout(INTRO_SECONDS):
                return await self._asked(title)
        except TimeoutError:
            pass
        raise WikiError(self._site, f"did not answer within {INTRO_SECONDS:g} seconds")

    async def _asked(self, title: str) -> Intro | None:
        wanted = {"prop": "extracts|pageprops", "exintro": "1", "explaintext": "1"}
        answer = await self._connected().ask(
            action="query", **wanted, ppprop="disambiguation", redirects="1", titles=title
        )
        pages = listed(answer, "query", "pages")
        return _intro_of(pages[0]) if pages else None

    def _connected(self) -> WikiClient:
        """The client of the loop that runs now."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = WikiClient(self._site), loop
            self._bridge.at_stop(self._client.close)
        return self._client


def _title(entity: str) -> str:
    """The title to ask for, "" for what can be none of an article."""
    try:
        name = page_name(entity)
    except TitleError:
        return ""
    return name.title if name.namespace == "Main" else ""


def _intro_of(page: dict[str, Any]) -> Intro | None:
    several_meanings = "disambiguation" in part(page, "pageprops")
    said = visible(text(page, "extract")[: 4 * INTRO_CHARACTERS]).strip()
    if several_meanings or number(page, "ns") != 0 or not said:
        return None
    return Intro(title=visible(text(page, "title")), text=_short(said))


def _short(said: str) -> str:
    """The text up to the last sentence that fits, or the last word where none does."""
    if len(said) <= INTRO_CHARACTERS:
        return said
    ends = [end.end() for end in SENTENCE_END.finditer(said[: INTRO_CHARACTERS + 1])]
    whole = max((end for end in ends if end <= INTRO_CHARACTERS), default=0)
    if whole:
        return said[:whole]
    return f"{said[: INTRO_CHARACTERS - 1].rpartition(' ')[0] or said[: INTRO_CHARACTERS - 1]}…"
