"""Build pages and drafts for tests."""

from typing import Any

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import Page, PageDraft, PageMeta, page_name


def a_page(title: str, body: str = "Stone.", **meta: Any) -> Page:
    return Page(name=page_name(title), body=body, meta=PageMeta(**meta))


def a_draft(title: str, body: str = "Stone.", *, was: str = "", **meta: Any) -> PageDraft:
    return PageDraft(
        page=a_page(title, body, **meta), was=was, by=trusted("Anna"), note="A new page"
    )
