"""Drafts of pages: who may see one, and what is to be written when it is approved.

The command `kb` and the page of a draft both decide by this; reading the page as it is now and
writing it is theirs, because a base may be on another machine.
"""

from dataclasses import replace

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import Page, PageDraft
from evennia_ai.npc.views.visibility import may_see_package
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.knowledge.page_drafts import StoredDraft


def may_see_draft(viewer: Viewer, found: StoredDraft, now: Page | None) -> bool:
    """True if somebody may see a draft: its page, `now` as it is, and all it was made from."""
    pages = (found.draft.page, *([now] if now else []))
    is_open = all(viewer.may_view(page.locks) for page in pages)
    return is_open and may_see_package(viewer, found.context_meta)


def is_written(found: StoredDraft, now: Page) -> bool:
    """True if the page, which is `now` so, says it already: what was decided was not stored."""
    return now.sha256 == found.draft.page.sha256


def to_be_written(found: StoredDraft, now: Page | None, *, by: Actor) -> PageDraft:
    """What approving a draft writes. StoreError: the page is not what it was written from."""
    if (now.revision if now else "") != found.draft.was:
        state = f"revision {now.revision} by now" if now else "gone by now"
        raise StoreError(
            f"Draft {found.number} was written from revision {found.draft.was or 'none'} of"
            f" {found.base}/{found.draft.page.name}, which is {state}. Nothing was written:"
            f" take what is good of it over with kb/edit, then kb/refuse {found.number}."
        )
    # Who writes drafts decides about no locks of pages that are there.
    page = replace(found.draft.page, locks=now.locks) if now else found.draft.page
    return PageDraft(page=page, was=found.draft.was, by=by, note=f"draft {found.number}")
