"""Builders for tests of stored knowledge. Each shows only the values that matter."""

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.markup import build_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, page_name
from evennia_ai.store.knowledge import pages
from evennia_ai.store.knowledge.knowledge_bases import save_base


def a_base(key="harbour", **fields) -> BaseInfo:
    return save_base(
        BaseInfo(key=key, name=fields.pop("name", key.title()), **fields), by=trusted("Mira")
    )


def a_page(title="Ferry", body="It crosses at dusk.", **meta) -> Page:
    return build_page(page_name(title), meta, body)


def saved(page: Page, *, base="harbour", by="Mira", was=None, note="") -> Page:
    """Save a page, by default over its newest revision, and return the stored page."""
    if was is None:
        found = pages.page_or_none(base, page.name, follow=False)
        was = found.revision if found and found.name.folded == page.name.folded else ""
    return pages.save_page(base, PageDraft(page=page, was=was, by=trusted(by), note=note))


def a_saved_page(title="Ferry", body="It crosses at dusk.", *, base="harbour", **meta) -> Page:
    return saved(a_page(title, body, **meta), base=base)
