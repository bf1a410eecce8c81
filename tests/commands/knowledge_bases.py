"""A small knowledge base for the tests of `kb`, and functions that read stored pages."""

from typing import Any

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.markup import read_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, page_name
from evennia_ai.store.knowledge import knowledge_bases, pages

HARBOUR = {
    "The Ferry": (
        "---\naliases: [Boat]\n---\nThe ferry crosses at slack water. See [[Oren]], [[Moon]]."
    ),
    "Oren": "Oren rows the [[The Ferry|ferry]].",
    "Sources:Ledger": "Two coppers a head.",
    "Instructions:Create/Source": "---\nrequires: [Base Workflow, Create/Source]\n---\nAsk first.",
    "Instructions:Base Workflow": "---\nrequires: [Rules, Nowhere]\n---\nStep by step.",
    "Instructions:Rules": "---\nrequires: [Create/Source]\n---\nNo contradictions.",
}


def make_base(key: str = "harbour", texts: dict[str, str] = HARBOUR, **fields: Any) -> BaseInfo:
    """Store a base with these pages, all written by Tam."""
    info = BaseInfo(key=key, name=key.title(), **fields)
    knowledge_bases.save_base(info, by=trusted("Tam"))
    for title, text in texts.items():
        write(title, text, base=key)
    made = knowledge_bases.base_or_none(key)
    assert made is not None
    return made


def write(title: str, text: str, *, base: str = "harbour", was: str = "", by: str = "Tam") -> Page:
    """Store a page."""
    page = read_page(page_name(title), text)
    return pages.save_page(base, PageDraft(page=page, was=was, by=trusted(by)))


def page(title: str, *, base: str = "harbour") -> Page | None:
    """Return the stored page of this title, without following a redirect."""
    return pages.page_or_none(base, page_name(title), follow=False)


def everything() -> list[Any]:
    """Return everything that a command could change, to check that nothing was changed."""
    return [
        (
            info,
            knowledge_bases.assigned_to(info.key),
            pages.all_pages(info.key, most_characters=10**9),
        )
        for info in knowledge_bases.list_bases()
    ]
