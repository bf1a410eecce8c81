"""The page of a draft: what it would change, what its writer was shown, and the decision on it."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import NotStoredError, StoreError
from evennia_ai.engine.knowledge.assembly.panel import context_panel
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import Page as KnowledgePage
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.drafting import is_written, may_see_draft, page_to_write
from evennia_ai.store.knowledge import knowledge_bases, page_drafts, pages
from evennia_ai.store.knowledge.page_drafts import StoredDraft
from evennia_ai.web.site.differing import text_differences
from evennia_ai.web.site.knowledge import draft_row, shows_texts
from evennia_ai.web.site.page import Page


class DraftPage(Page):
    """`/ai/drafts/<number>/`: one draft of a knowledge page."""

    template = "evennia_ai/draft.html"
    section = "knowledge"

    def page_values(self, number: int) -> dict[str, Any]:
        found, now = self._seen(number)
        meta = dict(found.context_meta)
        title = f"draft {found.number}, {found.base}/{found.draft.page.name}"
        return {
            **draft_row(found),
            "task": found.task,
            "note": found.draft.note,
            "was": found.draft.was,
            "now": now.revision if now else "",
            "difference": text_differences(
                write_page(now) if now else "", write_page(found.draft.page)
            ),
            "context": meta,
            "panel": context_panel(title, found.task, meta) if "task_type" in meta else [],
        }

    def post(self, request: HttpRequest, number: int) -> HttpResponseBase:
        """Approve or refuse the draft, as the field `do` says."""
        acts = {"approve": self._approve, "refuse": self._refuse}
        act = self.act_in_form(acts)
        found, now = self._seen(number)
        if found.state != "waiting":
            raise StoreError(
                f"Draft {number} was already {found.state} by {found.decided_by}; nothing changed."
            )
        act(found, now)
        return HttpResponseRedirect(reverse("evennia_ai:draft", kwargs={"number": number}))

    def _approve(self, found: StoredDraft, now: KnowledgePage | None) -> None:
        if now is None or not is_written(found, now):
            pages.save_page(found.base, page_to_write(found, now, by=self.actor))
        page_drafts.decide_draft(found.number, approved=True, by=self.actor)

    def _refuse(self, found: StoredDraft, now: KnowledgePage | None) -> None:
        page_drafts.decide_draft(found.number, approved=False, by=self.actor)

    def _seen(self, number: int) -> tuple[StoredDraft, KnowledgePage | None]:
        """Return the draft and the current page.

        Raises:
            NotStoredError: There is no such draft, or the viewer may not see it.
        """
        viewer = viewer_of(self.request.user)
        found = page_drafts.draft_or_none(number)
        info = knowledge_bases.base_or_none(found.base) if found else None
        if found and info and viewer.may_view(info.locks) and shows_texts(info):
            (now,) = pages.pages_named(found.base, [found.draft.page.name])
            if may_see_draft(viewer, found, now):
                return found, now
        raise NotStoredError("draft that you may read here, with number", str(number))
