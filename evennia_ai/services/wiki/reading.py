"""Read pages of a wiki in batches, cache them, and translate names.

The text of a revision never changes, so it is cached by the revision's number. Each request asks
for the newest revision. A wiki has its own names for namespaces and pages, which are translated
into ours.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal

from evennia_ai.engine.knowledge.pages.markup import MAX_TEXT, MarkupError, find_links, read_page
from evennia_ai.engine.knowledge.pages.page import Namespace, Page, PageName, TitleError, page_name
from evennia_ai.services.wiki.client import (
    MOST_TITLES,
    WikiClient,
    join_values,
    number,
    object_at,
    objects_at,
    text,
)

MAIN: Final = 0
_NAMED: Final[tuple[Namespace, ...]] = ("Instructions", "Sources")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The namespaces of one wiki, and how its names translate into ours."""

    subjects: Mapping[Namespace, int]
    """The wiki's ids of our namespaces, without their Talk namespaces."""
    labels: Mapping[int, str]
    """The prefix that titles in a namespace have in the wiki, by the namespace's id."""
    known: Mapping[str, int]
    """The namespace ids for all words that the wiki accepts as a namespace.

    The words are in lower case.
    """

    def title_of(self, name: PageName) -> str | None:
        """Return the wiki's title for a page of ours, or None if the wiki cannot have it."""
        place = self._place_of(name)
        if place is None or self.is_elsewhere(place[1]):
            return None
        number_there, title = place
        return title if number_there == MAIN else f"{self.labels[number_there]}:{title}"

    def name_of(self, number_there: int, title: str) -> PageName | None:
        """Return our name for a page of the wiki, or None if it is in no namespace of ours."""
        bare = title if number_there == MAIN else title.partition(":")[2]
        for namespace, subject in self.subjects.items():
            if number_there == subject:
                return _named(namespace, bare)
            if number_there == subject + 1:
                about = _named(namespace, bare)
                return about and about.talk
        return None

    def linked(self, name: PageName) -> PageName | None:
        """Return the page to which a link in a text of the wiki leads, or None."""
        if name.namespace != "Main":
            return name
        head, colon, rest = name.title.lstrip(":").partition(":")
        number_there = self.known.get(_folded(head)) if colon else None
        if number_there is None:
            return name
        return self.name_of(number_there, f"{head}:{rest.strip()}")

    def numbers_of(self, namespace: Namespace) -> dict[int, str]:
        """Return the wiki's ids for our namespace, each with the prefix of our titles."""
        if namespace != "Talk":
            return {self.subjects[namespace]: ""} if namespace in self.subjects else {}
        return {
            subject + 1: "" if ours == "Main" else f"{ours}:"
            for ours, subject in self.subjects.items()
            if subject + 1 in self.labels
        }

    def is_elsewhere(self, title: str) -> bool:
        """True if the wiki would take the beginning of a title for one of its namespaces."""
        head, colon, _ = title.lstrip(": ").partition(":")
        return title.startswith(":") or (bool(colon) and _folded(head) in self.known)

    def _place_of(self, name: PageName) -> tuple[int, str] | None:
        if name.namespace != "Talk":
            subject = self.subjects.get(name.namespace)
            return None if subject is None else (subject, name.title)
        try:
            about = page_name(name.title)
        except TitleError:
            return None
        subject = None if about.namespace == "Talk" else self.subjects.get(about.namespace)
        if subject is None or subject + 1 not in self.labels:
            return None
        return subject + 1, about.title


def names_of(answer: dict[str, Any], told: Mapping[Namespace, int]) -> Names:
    """Return the namespaces of a wiki from its answer.

    `told` are ids from an admin's settings, which take precedence.
    """
    there = object_at(answer, "query", "namespaces")
    labels = {
        number(one, "id"): text(one, "name") for one in there.values() if isinstance(one, dict)
    }
    known: dict[str, int] = {}
    for one in [
        *filter(_is_object, there.values()),
        *objects_at(answer, "query", "namespacealiases"),
    ]:
        words = (text(one, "name"), text(one, "canonical"), text(one, "alias"))
        known.update({_folded(word): number(one, "id") for word in words if word})
    subjects: dict[Namespace, int] = {"Main": MAIN}
    for namespace in _NAMED:
        found = told.get(namespace, known.get(_folded(namespace)))
        if found in labels:
            subjects[namespace] = found
    return Names(subjects=subjects, labels=labels, known=known)


def _named(namespace: Namespace, title: str) -> PageName | None:
    """Return the title of a wiki page as a page name in this namespace.

    Return None if the title itself begins like a namespace, such as "Talk: trade" in "Main".
    """
    try:
        name = page_name(title, default=namespace)
    except TitleError:
        return None
    return name if name.namespace == namespace else None


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _folded(word: str) -> str:
    return " ".join(word.replace("_", " ").split()).casefold()


log: Final = logging.getLogger(__name__)

MOST_KEPT: Final = 1_000
MOST_KEPT_CHARACTERS: Final = 8_000_000
MOST_MOVES: Final = 5
"""The most steps from a requested title to its page: corrections of the title, then redirects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentRevision:
    """The newest revision of a page that exists. `size` is in bytes."""

    name: PageName
    page: int
    revision: int
    size: int


class PageReader:
    """A reader of one wiki's pages. It uses our names for them."""

    def __init__(self, client: WikiClient, names: Names) -> None:
        self._client = client
        self._names = names
        self._kept = _Kept()

    async def pages(self, names: Sequence[PageName]) -> list[Page | None]:
        """Return the current page for each of these names, or None if the page is missing.

        Redirects are followed.

        Raises:
            WikiError: the wiki gave no answer.
        """
        found = await self.current(names)
        read = await self.texts([one for one in found if one is not None])
        return [None if one is None else read.get(one.revision) for one in found]

    async def current(self, names: Sequence[PageName]) -> list[CurrentRevision | None]:
        """Return the newest revisions to which these names lead, without their texts."""
        titles = [self._names.title_of(name) for name in names]
        found: dict[str, CurrentRevision] = {}
        for batch in _batches(dict.fromkeys(one for one in titles if one is not None)):
            found |= await self._current_of(batch)
        return [None if title is None else found.get(title) for title in titles]

    async def all_current(
        self,
        places: Iterable[int],
        *,
        most: int,
        most_bytes: int,
        kinds: Literal["all", "nonredirects"] = "nonredirects",
    ) -> list[CurrentRevision] | None:
        """Return the newest revisions of all pages in these namespaces.

        Return None if there are too many.
        """
        found: list[CurrentRevision] = []
        for place in places:
            wanted = {"generator": "allpages", "gapnamespace": str(place), "gaplimit": "max"}
            asked = {**wanted, "gapfilterredir": kinds, "prop": "info"}
            async with self._client.ask_on(action="query", **asked) as answers:
                async for answer in answers:
                    pages = objects_at(answer, "query", "pages")
                    told = [current_of(one, self._names) for one in pages]
                    found += [one for one in told if one is not None]
                    if len(found) > most or sum(one.size for one in found) > most_bytes:
                        return None
        return found

    async def texts(self, wanted: Sequence[CurrentRevision]) -> dict[int, Page]:
        """Return the pages with the texts of these revisions, by revision number."""
        pages = {one.revision: page for one in wanted if (page := self._kept.page(one))}
        missing = {one.revision: one for one in wanted if one.revision not in pages}
        for batch in _batches(missing):
            for revision, written in (await self._texts_of(batch)).items():
                if revision in missing:
                    page = self._page(missing[revision], written)
                    self._kept.keep(missing[revision], page)
                    pages[revision] = page
        return pages

    async def _current_of(self, titles: list[str]) -> dict[str, CurrentRevision]:
        """Return the newest revisions to which titles of the wiki lead."""
        wanted = {
            "action": "query",
            "prop": "info",
            "redirects": "1",
            "titles": join_values(titles),
        }
        there: dict[str, CurrentRevision] = {}
        moves: dict[str, str] = {}
        async with self._client.ask_on(**wanted) as answers:
            async for answer in answers:
                for kind in ("normalized", "converted", "redirects"):
                    moves |= {
                        text(one, "from"): text(one, "to")
                        for one in objects_at(answer, "query", kind)
                    }
                for page in objects_at(answer, "query", "pages"):
                    if current := current_of(page, self._names):
                        there[text(page, "title")] = current
        return {title: one for title in titles if (one := there.get(_moved(title, moves)))}

    async def _texts_of(self, revisions: list[int]) -> dict[int, str]:
        wanted = {
            "action": "query",
            "prop": "revisions",
            "rvprop": "ids|content",
            "rvslots": "main",
        }
        numbers = "|".join(map(str, revisions))
        found: dict[int, str] = {}
        async with self._client.ask_on(**wanted, revids=numbers) as answers:
            async for answer in answers:
                pages = objects_at(answer, "query", "pages")
                for revision in (one for page in pages for one in objects_at(page, "revisions")):
                    content = object_at(revision, "slots", "main").get("content")
                    if isinstance(
                        content, str
                    ):  # A revision that the wiki's staff has hidden has no content.
                        found[number(revision, "revid")] = content
        return found

    def _page(self, current: CurrentRevision, written: str) -> Page:
        page = _read(current.name, written, base=self._client.site.key)
        links = tuple(dict.fromkeys(filter(None, map(self._names.linked, page.links))))
        requires = tuple(dict.fromkeys(filter(None, map(self._names.linked, page.meta.requires))))
        redirect = page.meta.redirect and self._names.linked(page.meta.redirect)
        return replace(
            page,
            links=links,
            meta=replace(page.meta, requires=requires, redirect=redirect),
            base=self._client.site.key,
            revision=str(current.revision),
        )


def current_of(told: dict[str, Any], names: Names) -> CurrentRevision | None:
    """Return the newest revision from the wiki's description of a page, or None."""
    name = names.name_of(number(told, "ns"), text(told, "title"))
    page, revision = number(told, "pageid"), number(told, "lastrevid")
    if name is None or not page or not revision:
        return None
    return CurrentRevision(name=name, page=page, revision=revision, size=number(told, "length"))


class _Kept:
    """A cache of pages.

    The number of pages and of characters is limited; the oldest page is removed first.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[CurrentRevision, Page] = OrderedDict()
        self._characters = 0

    def page(self, current: CurrentRevision) -> Page | None:
        if current in self._pages:
            self._pages.move_to_end(current)
        return self._pages.get(current)

    def keep(self, current: CurrentRevision, page: Page) -> None:
        if current in self._pages:
            return
        self._pages[current] = page
        self._characters += len(page.body)
        while len(self._pages) > MOST_KEPT or self._characters > MOST_KEPT_CHARACTERS:
            _, oldest = self._pages.popitem(last=False)
            self._characters -= len(oldest.body)


def _read(name: PageName, written: str, *, base: str) -> Page:
    """Return the page that a text describes.

    If its markup is wrong, the page has only the text.
    """
    try:
        return read_page(name, written)
    except MarkupError as error:
        log.warning("knowledge base '%s': page %s is read as plain text: %s", base, name, error)
        body = written[:MAX_TEXT]
        return Page(name=name, body=body, links=find_links(body))


def _moved(title: str, moves: dict[str, str]) -> str:
    for _ in range(MOST_MOVES):
        if title not in moves:
            break
        title = moves[title]
    return title


def _batches(values: Iterable[Any]) -> Iterable[list[Any]]:
    left = iter(values)
    while batch := list(islice(left, MOST_TITLES)):
        yield batch
