"""A small wiki in the store, a model with a scripted plan and text, and functions that do tasks."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, page_name
from evennia_ai.engine.knowledge.settings import LorekeeperSettings
from evennia_ai.npc.lorekeeper.keeping import LorekeeperAnswer, lorekeeper
from evennia_ai.store.knowledge import page_drafts, pages
from evennia_ai.store.knowledge.knowledge_bases import save_base

PAGES = {
    "Instructions:World Bible": "A harbour, and no magic.",
    "Instructions:Core/Canon Policy": "The World Bible wins.",
    "Instructions:Core/Continuity Rules": "Six came home.",
    "Instructions:Config": "---\nworld: Ebbwick\nlinked_pages: 1\n---\nHow it is done.",
    "The Ferry": "---\naliases: [Boat]\nsummary: A boat.\n---\nThe ferry belongs to [[Oren]].",
    "Oren": "Oren rows [[The Ferry]].",
    "The Vault": "---\nlocks: view:perm(Admin)\n---\nThe code is seventeen.",
    "Sources:The Log": "The ferry sailed at noon.",
    "Talk:Sources:The Log": "= Bias Analysis =\nA clerk's.\n= Gossip =\nThe clerk drinks.",
}
TASK = "Write an article about Lantern Night"
A_PAGE = "=== PAGE: Lantern Night ===\nOn [[Lantern Night]] lanterns are lit."


def a_wiki(key: str = "harbour", *, texts: Mapping[str, str] = PAGES, **info: Any) -> BaseInfo:
    """Create a base with these pages."""
    base = save_base(BaseInfo(key=key, name=key.title(), **info), by=trusted("builder"))
    for title, text in texts.items():
        write(key, title, text)
    return base


def write(key: str, title: str, text: str) -> Page:
    """Write a page, and replace its earlier text."""
    page = read_page(page_name(title), text)
    was = pages.page_or_none(key, page.name, follow=False)
    draft = PageDraft(page=page, was=was.revision if was else "", by=trusted("builder"))
    return pages.save_page(key, draft)


def stored(key: str, title: str) -> Page:
    """Return the current page in the store."""
    found = pages.page_or_none(key, page_name(title))
    assert found is not None
    return found


class Writer:
    """A model that answers `plan` as planner and `text` as writer.

    `planned` and `asked` are the requests that it got.
    """

    def __init__(self, text: Any = A_PAGE, *, plan: Any = ("unknown", ["The Ferry"])) -> None:
        self.text, self.plan = text, plan
        self.planned: list[Any] = []
        self.asked: list[Any] = []

    def __call__(self, request: Any) -> Any:
        if any("<task>" in message.content for message in request.messages):
            self.planned.append(request)
            return self.plan if isinstance(self.plan, str | Exception) else _plan(*self.plan)
        self.asked.append(request)
        return self.text

    @property
    def sent(self) -> list[tuple[str, str]]:
        """Return role and content of each message in the last request to the writer."""
        return [(message.role, message.content) for message in self.asked[-1].messages]


def _plan(task_type: str, entities: list[str]) -> str:
    return json.dumps({"task_type": task_type, "entities": entities, "writes_page": True})


def restricted(info: BaseInfo) -> BaseInfo:
    """Make the base restricted."""
    return save_base(replace(info, restricted=True), by=trusted("builder"))


def keeps(stage: Any, writer: Any = None, **settings: Any) -> Writer:
    """Install this model. `settings` are those of the lorekeeper."""
    writer = writer or Writer()
    stage.talks_with(writer, lorekeeper=LorekeeperSettings(**settings))
    return writer


def done(asked: "Deferred[Any]") -> Any:
    """Return the result of a Deferred that has fired."""
    results: list[Any] = []
    asked.addBoth(results.append)
    assert results
    return results[0]


def answer(mara: Any, task: str = TASK, **options: Any) -> Any:
    """Return the answer to a task for the wiki "harbour"."""
    told = done(lorekeeper(task, base="harbour", by=mara, **options))
    assert isinstance(told, LorekeeperAnswer), told
    return told


def refused(by: Any, task: str = TASK, **options: Any) -> str:
    """Return the error of a task that failed. Check that it left no draft."""
    before = page_drafts.waiting_drafts()
    failure = done(lorekeeper(task, base="harbour", by=by, **options))
    assert isinstance(failure, Failure) and failure.check(EvenniaAIError), failure
    assert page_drafts.waiting_drafts() == before
    return str(failure.getErrorMessage())
