"""Writes an approved draft to a wiki, unless somebody else changed the page in the meantime.

The wiki itself would merge two edits that touch other lines, and would take a second edit of the
same account for a correction of its first. So the newest revision is asked for before the edit;
what falls into the moment between the two is merged by the wiki, which loses nothing.
"""

from typing import Final

from evennia_ai.knowledge.backends import Draft
from evennia_ai.knowledge.markup import write_wikitext
from evennia_ai.knowledge.pages import Page
from evennia_ai.wiki.answers import listed, part, text
from evennia_ai.wiki.client import WikiClient, WikiError
from evennia_ai.wiki.names import Names
from evennia_ai.wiki.reading import Current, PageReader, current_of

SUMMARY_CHARACTERS: Final = 400
_CONFLICTS: Final = frozenset({"editconflict", "articleexists", "missingtitle"})


class PageWriter:
    """Edits pages of one wiki."""

    def __init__(self, client: WikiClient, names: Names, reader: PageReader) -> None:
        self._client = client
        self._names = names
        self._reader = reader

    async def write(self, draft: Draft) -> Page:
        """The page as it is after the draft was written.

        Raises:
            WikiError: nothing was written, or it is not known; the text says why.
        """
        name = draft.page.name
        title = self._names.title_of(name)
        if title is None:
            raise self._problem(f"can have no page '{name}'; see which namespaces it has")
        there = await self._there(title)
        revision = "" if there is None else str(there.revision)
        if revision != draft.was:
            raise await self._conflict(draft, there)
        await self._edit(draft, title)
        written = await self._there(title)
        pages = await self._reader.texts([written] if written is not None else [])
        if written is None or written.revision not in pages:
            raise self._problem(f"took the page '{name}' and does not have it now; look there")
        return pages[written.revision]

    async def _there(self, title: str) -> Current | None:
        """The page of exactly this title: a redirect is not followed."""
        answer = await self._client.ask(action="query", prop="info", titles=title)
        told = listed(answer, "query", "pages")
        return current_of(told[0], self._names) if told else None

    async def _edit(self, draft: Draft, title: str) -> None:
        only = {"baserevid": draft.was, "nocreate": "1"} if draft.was else {"createonly": "1"}
        wanted = {"action": "edit", "title": title, "bot": "1", "summary": _summary(draft), **only}
        try:
            answer = await self._client.change(**wanted, text=self._written(draft.page))
        except WikiError as error:
            if error.code not in _CONFLICTS:
                raise
            conflict = await self._conflict(draft, await self._there(title))
            raise conflict from None
        edit = part(answer, "edit")
        if text(edit, "result") != "Success":
            said = text(edit, "result") or "nothing"
            raise self._problem(f"did not take the page '{title}' and said: {said}; edit it there")

    async def _conflict(self, draft: Draft, there: Current | None) -> WikiError:
        """The error of a page that is not as it was when the draft was written."""
        name = draft.page.name
        if there is None:
            return self._problem(f"has no page '{name}' any more; write it as a new one")
        asked = {"prop": "revisions", "rvprop": "user|timestamp", "revids": str(there.revision)}
        answer = await self._client.ask(action="query", **asked)
        pages = listed(answer, "query", "pages")
        last = next(iter(listed(pages[0], "revisions") if pages else []), {})
        who, when = text(last, "user") or "somebody", text(last, "timestamp") or "meanwhile"
        if not draft.was:
            return self._problem(f"already has a page '{name}', by {who} ({when}); edit that one")
        return self._problem(
            f"has another '{name}' by now: {who} changed it ({when}); nothing was written, make the"
            " draft again from the page as it is"
        )

    def _written(self, page: Page) -> str:
        """A page's text as the wiki gets it; a redirect must begin with the word for it."""
        if page.meta.redirect is None:
            return write_wikitext(page)
        target = self._names.title_of(page.meta.redirect) or page.meta.redirect.full
        return f"#REDIRECT [[{target}]]\n{page.body}"

    def _problem(self, why: str) -> WikiError:
        return WikiError(self._client.site, why)


def _summary(draft: Draft) -> str:
    """What the history of the page says of the edit."""
    words = " ".join(f"{draft.note or 'Written in the game'} (approved by {draft.by})".split())
    return words[:SUMMARY_CHARACTERS]
