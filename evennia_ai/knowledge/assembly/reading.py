"""Reading: pages for a step, without those that may not be seen here."""

from collections.abc import Iterable, Sequence

from evennia_ai.knowledge.assembly.requests import Fetch, Hidden, Step
from evennia_ai.knowledge.assembly.trace import Trace
from evennia_ai.knowledge.pages import Page
from evennia_ai.knowledge.titles import PageName


def read(names: Sequence[PageName], trace: Trace) -> Step[list[Page | None]]:
    """The pages of these names in their order, None for each that is not there or not to be seen.

    That a page is hidden is a warning; what it is called was known to whoever asked for it.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    hidden = (name for name, page in zip(names, answer, strict=True) if isinstance(page, Hidden))
    trace.warn(*(f"{name} may not be read here" for name in hidden))
    return [page if isinstance(page, Page) else None for page in answer]


def read_listed(names: Sequence[PageName], trace: Trace) -> Step[list[Page]]:
    """The pages of these names, each once, where the names are the backend's own.

    Of those that may not be seen the number alone is told: a title may be a secret as well.
    """
    if not names:
        return []
    answer = yield Fetch(tuple(names))
    if hidden := sum(isinstance(page, Hidden) for page in answer):
        trace.warn(f"{hidden} of the pages that are listed may not be read here")
    return distinct(page if isinstance(page, Page) else None for page in answer)


def distinct(pages: Iterable[Page | None]) -> list[Page]:
    """The pages that are there, each once: two titles may lead to one."""
    return list({page.name: page for page in pages if page is not None}.values())


def titles(pages: Iterable[Page]) -> str:
    """The names of pages for a line of the trace."""
    return ", ".join(page.name.full for page in pages) or "none"
