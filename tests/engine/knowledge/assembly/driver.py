"""A driver for assemblies: it answers their requests from pages in memory and records them."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from evennia_ai.engine.knowledge.assembly.assembly import assemble_package
from evennia_ai.engine.knowledge.assembly.packages import Package
from evennia_ai.engine.knowledge.assembly.requests import (
    AskPlanner,
    Fetch,
    Hidden,
    Introduction,
    Links,
    ListTitles,
    LoreTask,
    PageSearch,
    Request,
    Step,
)
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import Hit, Page, PageName, page_name
from evennia_ai.engine.text.words import COMMON_WORDS, split_signs

WIKI = Path(__file__).parent / "wiki.yaml"
Answer = Callable[[Request], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnArticle:
    """A Wikipedia article for tests."""

    title: str
    text: str


def a_page(title: str, text: str = "Some text.", *, revision: str = "r1") -> Page:
    """Make a page as a backend would read it from a wiki."""
    return replace(read_page(page_name(title), text), revision=revision, base="lowmark")


def named(*titles: str) -> tuple[PageName, ...]:
    return tuple(page_name(one) for one in titles)


def the_wiki() -> tuple[Page, ...]:
    """Return the pages of `wiki.yaml`, each with another revision."""
    written = yaml.safe_load(WIKI.read_text(encoding="utf-8"))
    return tuple(
        a_page(title, text, revision=f"r{number}")
        for number, (title, text) in enumerate(written.items(), start=1)
    )


@dataclass(slots=True, kw_only=True)
class AnswersFrom:
    """Answers each request from pages in memory, and records it in `asked`.

    Titles, aliases and redirects lead to pages, as in a backend. Pages in `hidden` exist, but may
    not be read.
    """

    pages: Sequence[Page]
    plan: Any = ""
    hidden: Collection[PageName] = ()
    articles: Mapping[str, Any] = field(default_factory=dict)
    asked: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Any:
        self.asked.append(request)
        match request:
            case Fetch(names):
                return [self._seen(name) for name in names]
            case Links(names):
                return [self._page(name).links for name in names]
            case ListTitles(namespace):
                names = (one.name for one in self.pages)
                return sorted(one for one in names if one.namespace == namespace)
            case PageSearch(query, namespaces, limit):
                return self._hits(query, namespaces)[:limit]
            case AskPlanner():
                return self.plan
            case Introduction(entity):
                return self.articles.get(entity)

    def _seen(self, name: PageName) -> Page | Hidden | None:
        page = self._page(name)
        return Hidden() if page is not None and page.name in self.hidden else page

    def _page(self, name: PageName) -> Page | None:
        for page in self.pages:
            aliases = {alias.casefold() for alias in page.meta.aliases}
            same = page.name.namespace == name.namespace
            if same and (page.name.folded == name.folded or name.folded in aliases):
                return self._page(page.meta.redirect) if page.meta.redirect else page
        return None

    def _hits(self, query: str, namespaces: Collection[str]) -> list[Hit | Hidden]:
        wanted = set(split_signs(query)) - COMMON_WORDS
        scored = [
            (len(wanted & set(split_signs(f"{page.name.title} {page.body}"))), page)
            for page in self.pages
            if page.name.namespace in namespaces
        ]
        best = sorted(scored, key=lambda one: (-one[0], one[1].name.title))
        return [
            Hidden() if page.name in self.hidden else Hit(page=page, passage="", score=score)
            for score, page in best
            if score
        ]


def driven(step: Step[Any], answer: Answer) -> Any:
    """Answer all requests of a step and return its result."""
    try:
        request = next(step)
        while True:
            request = step.send(answer(request))
    except StopIteration as ended:
        return ended.value


def assembled(task: str | LoreTask, answers: Answer, **options: Any) -> Package:
    """Return the package for a task, with these answers to its requests."""
    wanted = LoreTask(text=task) if isinstance(task, str) else task
    return driven(assemble_package(wanted, **options), answers)


def a_plan(task_type: str, *entities: str, writes_page: bool = True) -> str:
    """Return a plan in the form in which the planner model writes it."""
    return json.dumps(
        {"task_type": task_type, "entities": list(entities), "writes_page": writes_page}
    )
