"""The `Backend` of knowledge bases in a MediaWiki, and a source of introductions from Wikipedia.

Every result is a Deferred, because requests run in the bridge's thread with a time limit while the
game continues. A page is written only if nobody has changed it since the draft was made. With an
introduction of a Wikipedia article, the lorekeeper can base a text on facts about something real.
This is off unless the game sets an address.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.engine.knowledge.pages.markup import write_wikitext
from evennia_ai.engine.knowledge.pages.page import (
    NAMESPACES,
    Hit,
    Namespace,
    Page,
    PageDraft,
    PageName,
    TitleError,
    page_name,
)
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.services.llm.speech import SENTENCE_END, visible_text
from evennia_ai.services.net.bridge import AsyncBridge, PerLoop
from evennia_ai.services.wiki.client import (
    UNKNOWN,
    WikiClient,
    WikiError,
    number,
    object_at,
    objects_at,
    text,
)
from evennia_ai.services.wiki.finding import Finder
from evennia_ai.services.wiki.reading import (
    CurrentRevision,
    Names,
    PageReader,
    current_of,
    names_of,
)
from evennia_ai.services.wiki.site import Site

SUMMARY_CHARACTERS: Final = 400
_CONFLICTS: Final = frozenset({"editconflict", "articleexists", "missingtitle"})


class PageWriter:
    """A writer of pages in one wiki."""

    def __init__(self, client: WikiClient, names: Names, reader: PageReader) -> None:
        self._client = client
        self._names = names
        self._reader = reader

    async def write(self, draft: PageDraft) -> Page:
        """Write a draft to the wiki, and return the page.

        Raises:
            WikiError: nothing was written, or the outcome is not known; the text says why.
        """
        name = draft.page.name
        title = self._names.title_of(name)
        if title is None:
            raise self._problem(f"can have no page '{name}'; see which namespaces it has")
        there = await self._current_page(title)
        revision = "" if there is None else str(there.revision)
        if revision != draft.was:
            raise await self._conflict(draft, there)
        await self._edit(draft, title)
        written = await self._current_page(title)
        pages = await self._reader.texts([written] if written is not None else [])
        if written is None or written.revision not in pages:
            raise self._problem(
                f"accepted the page '{name}' but does not have it now; look at the wiki"
            )
        return pages[written.revision]

    async def _current_page(self, title: str) -> CurrentRevision | None:
        """Return the newest revision of the page with exactly this title, or None."""
        answer = await self._client.ask(action="query", prop="info", titles=title)
        told = objects_at(answer, "query", "pages")
        return current_of(told[0], self._names) if told else None

    async def _edit(self, draft: PageDraft, title: str) -> None:
        only = {"baserevid": draft.was, "nocreate": "1"} if draft.was else {"createonly": "1"}
        wanted = {"action": "edit", "title": title, "bot": "1", "summary": _summary(draft), **only}
        try:
            answer = await self._client.change(**wanted, text=self._written(draft.page))
        except WikiError as error:
            if error.code not in _CONFLICTS:
                raise
            conflict = await self._conflict(draft, await self._current_page(title))
            raise conflict from None
        edit = object_at(answer, "edit")
        if text(edit, "result") != "Success":
            said = text(edit, "result") or "nothing"
            raise self._problem(f"did not take the page '{title}' and said: {said}; edit it there")

    async def _conflict(self, draft: PageDraft, there: CurrentRevision | None) -> WikiError:
        """Return the error for a page that was changed after the draft was made."""
        name = draft.page.name
        if there is None:
            return self._problem(f"has no page '{name}' any more; write it as a new one")
        asked = {"prop": "revisions", "rvprop": "user|timestamp", "revids": str(there.revision)}
        answer = await self._client.ask(action="query", **asked)
        pages = objects_at(answer, "query", "pages")
        last = next(iter(objects_at(pages[0], "revisions") if pages else []), {})
        who, when = text(last, "user") or "another user", text(last, "timestamp") or "meanwhile"
        if not draft.was:
            return self._problem(f"already has a page '{name}', by {who} ({when}); edit that one")
        return self._problem(
            f"has a newer version of '{name}': {who} changed it ({when}) after the draft was made;"
            " nothing was written, make the draft again"
        )

    def _written(self, page: Page) -> str:
        """Return a page's text as the wiki needs it. A redirect must begin with its keyword."""
        if page.meta.redirect is None:
            return write_wikitext(page)
        target = self._names.title_of(page.meta.redirect) or page.meta.redirect.full
        return f"#REDIRECT [[{target}]]\n{page.body}"

    def _problem(self, why: str) -> WikiError:
        return WikiError(self._client.site, why)


def _summary(draft: PageDraft) -> str:
    """Return the summary of the edit, which the page's history in the wiki shows."""
    words = " ".join(f"{draft.note or 'Written in the game'} (approved by {draft.by})".split())
    return words[:SUMMARY_CHARACTERS]


T = TypeVar("T")

MOST_BYTES_A_CHARACTER: Final = 4
MOST_PAGES: Final = 10_000


class MediaWikiBackend:
    """The knowledge base `key`, whose pages are in the wiki at `site`."""

    def __init__(
        self, key: str, site: Site, bridge: AsyncBridge, *, languages: Languages = ()
    ) -> None:
        self.key = key
        self._site = site
        self._bridge = bridge
        self._connection = PerLoop(
            bridge, lambda: _Connection(site, languages), lambda one: one.client.close()
        )

    def fetch(self, names: Sequence[PageName]) -> Deferred[Sequence[Page | None]]:
        """Return the pages with these names. Other case and aliases are accepted."""
        wanted = tuple(names)
        return self._asked(lambda wiki: _fetch_pages(wiki, wanted))

    def search(
        self, query: str, *, namespaces: Collection[Namespace] = (), limit: int = 20
    ) -> Deferred[Sequence[Hit]]:
        """Return the pages that match the words of a query, best first."""
        wanted = tuple(namespaces)
        return self._asked(lambda wiki: wiki.finder.hits(query, namespaces=wanted, limit=limit))

    def listed(self, namespace: Namespace, *, prefix: str = "") -> Deferred[Sequence[PageName]]:
        """Return the names of pages in a namespace whose titles have a prefix, sorted by title."""
        return self._asked(lambda wiki: wiki.finder.listed(namespace, prefix=prefix))

    def linking(self, names: Sequence[PageName]) -> Deferred[Sequence[Sequence[PageName]]]:
        """Return, for each of these pages, the names of the pages that it links to."""
        wanted = tuple(names)
        return self._asked(lambda wiki: _linked_names(wiki, wanted))

    def pages(self, *, most_characters: int) -> Deferred[Sequence[Page] | None]:
        """Return all pages, or None if they have more than `most_characters` together."""
        return self._asked(lambda wiki: _all_pages(wiki, most_characters))

    def write(self, draft: PageDraft) -> Deferred[Page]:
        """Write an approved page.

        Raises:
            NotPermittedError: the person who approved it has lost the right to write.
        """
        draft.by.check(f"writing page '{draft.page.name}'")
        return self._asked(lambda wiki: wiki.writer.write(draft), too_late=UNKNOWN)

    def close(self) -> None:
        """Close the connections to the wiki, if there are any."""
        self._connection.close()

    def _asked(
        self, work: "Callable[[_Wiki], Awaitable[T]]", *, too_late: str = "try it later"
    ) -> Deferred[T]:
        return self._bridge.run(lambda: self._in_time(work, too_late))

    async def _in_time(self, work: "Callable[[_Wiki], Awaitable[T]]", too_late: str) -> T:
        """Return the result of `work`, within the time limit.

        Raises:
            WikiError: the work took too long.
        """
        try:
            async with asyncio.timeout(self._site.whole_seconds):
                return await work(await self._connection.now().wiki())
        except TimeoutError:
            pass
        seconds = f"{self._site.whole_seconds:g} seconds"
        raise WikiError(self._site, f"did not answer within {seconds}; {too_late}")


class _Connection:
    """A client, and what the first request has shown about its wiki."""

    def __init__(self, site: Site, languages: Languages) -> None:
        self.client = WikiClient(site)
        self._languages = languages
        self._finding_out = asyncio.Lock()
        self._wiki: _Wiki | None = None

    async def wiki(self) -> "_Wiki":
        """Return the wiki with its namespaces.

        Raises:
            WikiError: the wiki did not list its namespaces.
        """
        async with self._finding_out:
            if self._wiki is None:
                self._wiki = await _found_out(self.client, self._languages)
        return self._wiki


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wiki:
    """A wiki with known namespaces, and the objects that read, search and write its pages."""

    names: Names
    reader: PageReader
    finder: Finder
    writer: PageWriter


async def _found_out(client: WikiClient, languages: Languages) -> _Wiki:
    """Ask a wiki for its namespaces and its number of pages."""
    told = {"siprop": "namespaces|namespacealiases|statistics"}
    answer = await client.ask(action="query", meta="siteinfo", **told)
    names = names_of(answer, client.site.namespaces)
    reader = PageReader(client, names)
    pages_there = number(object_at(answer, "query", "statistics"), "pages")
    return _Wiki(
        names=names,
        reader=reader,
        finder=Finder(client, names, reader, pages_there=pages_there, languages=languages),
        writer=PageWriter(client, names, reader),
    )


async def _fetch_pages(wiki: _Wiki, names: Sequence[PageName]) -> list[Page | None]:
    pages = await wiki.reader.pages(names)
    missing = [name for name, page in zip(names, pages, strict=True) if page is None]
    if not missing:
        return pages
    otherwise = await wiki.finder.otherwise(list(dict.fromkeys(missing)))
    return [page or otherwise.get(name) for name, page in zip(names, pages, strict=True)]


async def _linked_names(wiki: _Wiki, names: Sequence[PageName]) -> list[Sequence[PageName]]:
    return [page.links if page else () for page in await wiki.reader.pages(names)]


async def _all_pages(wiki: _Wiki, most_characters: int) -> list[Page] | None:
    """Return all pages of the wiki in the namespaces that this package uses.

    Return None as soon as they have more than `most_characters` together.
    """
    places = [one for space in NAMESPACES for one in wiki.names.numbers_of(space)]
    current = await wiki.reader.all_current(
        places, most=MOST_PAGES, most_bytes=most_characters * MOST_BYTES_A_CHARACTER
    )
    if current is None:
        return None
    texts = await wiki.reader.texts(current)
    pages = [texts[one.revision] for one in current if one.revision in texts]
    if sum(len(page.body) for page in pages) > most_characters:
        return None
    return sorted(pages, key=lambda page: page.name)


INTRO_CHARACTERS: Final = 1_500
INTRO_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intro:
    """The introduction of a Wikipedia article as plain text, with the article's title."""

    title: str
    text: str


class Wikipedia:
    """A Wikipedia, given by its address such as https://en.wikipedia.org/w/api.php."""

    def __init__(self, api: str, bridge: AsyncBridge) -> None:
        self._site = replace(
            Site(key="wikipedia", api=api),
            request_seconds=INTRO_SECONDS,
            whole_seconds=INTRO_SECONDS,
            max_retries=1,
        )
        self._bridge = bridge
        self._client = PerLoop(bridge, lambda: WikiClient(self._site), WikiClient.close)

    def intro(self, entity: str) -> Deferred[Intro | None]:
        """Return the introduction of the article about `entity`, or None.

        The Deferred may fail with WikiError.

        Pages that only list several meanings of a name are ignored.
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
        answer = await self._client.now().ask(
            action="query", **wanted, ppprop="disambiguation", redirects="1", titles=title
        )
        pages = objects_at(answer, "query", "pages")
        return _intro_of(pages[0]) if pages else None


def _title(entity: str) -> str:
    """Return the title to ask for, or "" if no article can have this name."""
    try:
        name = page_name(entity)
    except TitleError:
        return ""
    return name.title if name.namespace == "Main" else ""


def _intro_of(page: dict[str, Any]) -> Intro | None:
    several_meanings = "disambiguation" in object_at(page, "pageprops")
    said = visible_text(text(page, "extract")[: 4 * INTRO_CHARACTERS]).strip()
    if several_meanings or number(page, "ns") != 0 or not said:
        return None
    return Intro(title=visible_text(text(page, "title")), text=_short(said))


def _short(said: str) -> str:
    """Return the text up to the last sentence that fits, or else up to the last word that fits."""
    if len(said) <= INTRO_CHARACTERS:
        return said
    ends = [end.end() for end in SENTENCE_END.finditer(said[: INTRO_CHARACTERS + 1])]
    whole = max((end for end in ends if end <= INTRO_CHARACTERS), default=0)
    if whole:
        return said[:whole]
    return f"{said[: INTRO_CHARACTERS - 1].rpartition(' ')[0] or said[: INTRO_CHARACTERS - 1]}…"
