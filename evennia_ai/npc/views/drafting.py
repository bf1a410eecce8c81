"""Drafts of knowledge pages: who may see a draft, and what approving it writes.

The command `kb` and the web page of a draft both call these functions. The callers read the current
page and write the new one, because a knowledge base may be on another machine.
"""

from dataclasses import replace

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import Page, PageDraft
from evennia_ai.npc.views.visibility import may_see_package
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.knowledge.page_drafts import StoredDraft


def may_see_draft(viewer: Viewer, found: StoredDraft, now: Page | None) -> bool:
    """True if the viewer may see the draft: its page, the current page, and all its sources."""
    pages = (found.draft.page, *([now] if now else []))
    is_open = all(viewer.may_view(page.locks) for page in pages)
    return is_open and may_see_package(viewer, found.context_meta)


def is_written(found: StoredDraft, now: Page) -> bool:
    """True if the current page already has the draft's text, so that only the decision is open."""
    return now.sha256 == found.draft.page.sha256


def page_to_write(found: StoredDraft, now: Page | None, *, by: Actor) -> PageDraft:
    """Return the page that approving the draft would write.

    Raises:
        StoreError: The page has changed since the draft was written.
    """
    if (now.revision if now else "") != found.draft.was:
        state = f"revision {now.revision} by now" if now else "gone by now"
        raise StoreError(
            f"Draft {found.number} was written from revision {found.draft.was or 'none'} of"
            f" {found.base}/{found.draft.page.name}, which is {state}. Nothing was written:"
            f" copy what is good with kb/edit, then type kb/reject {found.number}."
        )
    # A draft cannot change the locks of an existing page.
    page = replace(found.draft.page, locks=now.locks) if now else found.draft.page
    return PageDraft(page=page, was=found.draft.was, by=by, note=f"draft {found.number}")
