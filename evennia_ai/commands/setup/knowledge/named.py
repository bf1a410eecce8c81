"""What builders' words mean in `kb`: a knowledge base, or a page of one, that they may see.

A base or a page whose `view` lock hides it is not there for those whom it hides it from. Where a
base is, in the database or on another machine, makes no difference here: its backend is asked.
"""

from collections.abc import Generator, Iterator
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.strict import CommandError
from evennia_ai.game.knowledge.backends import later
from evennia_ai.game.mind.viewers import allows
from evennia_ai.game.runtime import runtime
from evennia_ai.knowledge.pages.page import BaseInfo, Page, PageName, page_name
from evennia_ai.store.knowledge import knowledge_bases as bases

STORED: Final = "database"
ACCESS: Final = ("view", "search", "restricted")
BASE_ACCESS: Final = (*ACCESS, "edit")
LOSABLE: Final = ("view", "edit")
"""What a builder may lose by setting the lock of a base."""
_MOST_NAMES: Final = 12
_MOST_NEAR: Final = 4

# Steps of a switch that waits for a backend, and what they end with.
Asked = Generator[Deferred[Any], Any, Page]


def visible_bases(caller: Any) -> Iterator[BaseInfo]:
    """The bases that `caller` may see, by key."""
    for info in bases.bases():
        if allows(caller, info.locks, "view"):
            yield info


def base_named(caller: Any, text: str) -> BaseInfo:
    """The base of this key that `caller` may see."""
    info = bases.base(text.strip().lower())
    if info is None or not allows(caller, info.locks, "view"):
        known = ", ".join(seen.key for seen in list(visible_bases(caller))[:_MOST_NAMES])
        there = f"; there are {known}" if known else "; kb/new <base> makes one"
        raise CommandError(f"There is no knowledge base '{text}'{there}.")
    return info


def base_to_change(caller: Any, text: str) -> BaseInfo:
    """The same base, where `caller` may change it; CommandError where its lock `edit` says no."""
    info = base_named(caller, text)
    refuse_change(caller, info)
    return info


def refuse_change(caller: Any, info: BaseInfo) -> None:
    """CommandError where the lock `edit` of a base lets `caller` not change it or its pages."""
    if not allows(caller, info.locks, "edit"):
        raise CommandError(
            f"You may not change knowledge base '{info.key}': its lock edit says who may."
            " Nothing was changed."
        )


def split(text: str) -> tuple[str, str]:
    """The base and the page that `text` names, "" for no page; a page's title may hold slashes."""
    base, _, page = text.partition("/")
    return base.strip(), page.strip()


def page_typed(caller: Any, text: str, *, usage: str) -> tuple[BaseInfo, PageName]:
    """The base of `<base>/<page>` and the name of the page, which need not be there."""
    base, title = split(text)
    if not base or not title:
        raise CommandError(f"Name a page of a knowledge base: {usage}.")
    return base_named(caller, base), page_name(title)


def stored_base(info: BaseInfo) -> BaseInfo:
    """The base, where its pages are in the game's database and may be changed here."""
    if info.backend != STORED:
        raise CommandError(
            f"The pages of knowledge base '{info.key}' are not in the game's database but in"
            f" '{info.backend}', and this switch changes nothing there. Nothing was changed."
        )
    return info


def page_seen(caller: Any, info: BaseInfo, name: PageName) -> Asked:
    """The page of this name that `caller` may see; one redirect is followed."""
    page = yield from page_or_none(caller, info, name)
    if page is None:
        near = yield from _near(caller, info, name)
        raise CommandError(f"Knowledge base '{info.key}' has no page '{name}'{near}.")
    return page


def page_or_none(
    caller: Any, info: BaseInfo, name: PageName
) -> Generator[Deferred[Any], Any, Page | None]:
    """The same, None where there is none; one that is hidden is told of as if it was not there."""
    (page,) = yield later(runtime().backends.of(info).fetch([name]))
    return page if page is not None and may_see(caller, page) else None


def may_see(caller: Any, page: Page) -> bool:
    """Whether `caller` may see this page of a base that is visible."""
    return allows(caller, page.locks, "view")


def _near(caller: Any, info: BaseInfo, name: PageName) -> Generator[Deferred[Any], Any, str]:
    """The end of a sentence: which pages have the words of the title."""
    hits = yield later(runtime().backends.of(info).search(name.title, limit=_MOST_NEAR))
    found = ", ".join(f"{hit.page.name}" for hit in hits if may_see(caller, hit.page))
    return f"; near it are {found}" if found else f"; kb/pages {info.key} lists those there are"
