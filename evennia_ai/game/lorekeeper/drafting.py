"""Drafting: the pages in an answer become drafts, which wait until a builder decides.

A draft knows the revision it was written from, the task, what the generator was shown and what it
was sent, byte for byte. Locks are never a model's to change, and what a page says of itself stays
where the answer says nothing of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.errors import EvenniaAIError
from evennia_ai.game.knowledge.backends import later
from evennia_ai.game.lorekeeper.reading import may_read
from evennia_ai.game.lorekeeper.writing import WrittenPage, written_pages
from evennia_ai.knowledge.backends import Backend, PageDraft
from evennia_ai.knowledge.pages.markup import MarkupError, read_page
from evennia_ai.knowledge.pages.page import Page, PageMeta, PageName
from evennia_ai.store.knowledge import page_drafts

MOST_PAGES: Final = 20
"""Pages of one answer that become drafts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An answer and what it was made from: `request` is what was sent, as a stored text."""

    base: str
    backend: Backend
    by: Any
    task: str
    text: str
    context_meta: Mapping[str, Any]
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafted:
    """The numbers of the drafts in the order of their pages, and what became none and why."""

    numbers: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def drafted(written: Written) -> "Deferred[Drafted]":
    """The drafts of an answer's pages, stored.

    What cannot become one is a note: the answer is there and was paid for, whatever comes of it.
    """
    return Deferred.fromCoroutine(_drafted(written))


async def _drafted(written: Written) -> Drafted:
    pages = written_pages(written.text)
    notes = [f"'{one.title}' is no title of a page: {one.problem}" for one in pages if not one.name]
    named = {one.name: one for one in pages if one.name}  # of two texts of a page the last counts
    if len(named) > MOST_PAGES:
        notes.append(f"of {len(named)} pages the first {MOST_PAGES} became drafts")
    names = tuple(named)[:MOST_PAGES]
    try:
        found = await later(written.backend.fetch(names)) if names else ()
    except EvenniaAIError as error:
        return Drafted(notes=(*notes, f"no draft was made: {error}"))
    numbers: list[int] = []
    for name, now in zip(names, found, strict=True):
        draft, problem = _draft(named[name], name, now, written)
        number, problem = _stored(draft, written) if draft else (None, problem)
        if number is None:
            notes.append(f"no draft of {name}: {problem}")
        else:
            numbers.append(number)
    return Drafted(numbers=tuple(numbers), notes=tuple(notes))


def _stored(draft: PageDraft, written: Written) -> tuple[int | None, str]:
    """The number of a draft, or why it could not be stored."""
    try:
        stored = page_drafts.add(
            written.base,
            draft,
            task=written.task,
            context_meta=written.context_meta,
            package=written.request,
        )
    except EvenniaAIError as error:
        return None, str(error)
    return stored.number, ""


def _draft(
    page: WrittenPage, name: PageName, now: Page | None, written: Written
) -> tuple[PageDraft | None, str]:
    """The draft of a page that is `now` so, or why there is none."""
    if now is not None and not may_read(written.by, now.locks):
        return None, "it may not be read by who asked"
    if not page.text:
        return None, "the answer has no text for it"
    try:
        new = read_page(now.name if now else name, page.text)
    except MarkupError as error:
        return None, str(error)
    new = replace(
        new,
        base=written.base,
        meta=now.meta if now and new.meta == PageMeta() else new.meta,
        locks=now.locks if now else "",
    )
    if now is not None and now.sha256 == new.sha256:
        return None, "it says this already"
    who = str(written.by.key)[:180]
    note = " ".join(written.task.split())[:200]
    return PageDraft(
        page=new, was=now.revision if now else "", by=f"lorekeeper for {who}", note=note
    ), ""
