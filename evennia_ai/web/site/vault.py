"""The vault of a knowledge base: the passages that restricted searches found, and who read them.

Each reading is recorded. So the page itself shows no passage, and opening the vault is a POST.
"""

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase

from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.withheld.pages import HiddenPages
from evennia_ai.npc.views.withheld.viewer import withheld_mark
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.web.site.knowledge import get_visible_base
from evennia_ai.web.site.page import Page

MOST_READINGS: Final = 40


class VaultPage(Page):
    """`/ai/kb/<key>/vault/`: the vault of one knowledge base."""

    template = "evennia_ai/vault.html"
    section = "knowledge"

    def page_values(self, key: str) -> dict[str, Any]:
        info = get_visible_base(viewer_of(self.request.user), key)
        readings = knowledge_searches.vault_readings(key)
        return {
            "key": key,
            "name": info.name,
            "keeps": info.keeps_chunks,
            "is_open": False,
            "passages": [],
            "readings": [
                {"by": one.by, "at": one.at, "passages": one.chunks}
                for one in readings[:MOST_READINGS]
            ],
        }

    def post(self, request: HttpRequest, key: str) -> HttpResponseBase:
        """Record the reading and show the passages.

        Raises:
            StoreError: The reading cannot be recorded, so no passage is shown.
        """
        viewer = viewer_of(request.user)
        get_visible_base(viewer, key)
        hidden = HiddenPages(viewer)
        passages = []
        for chunk in knowledge_searches.open_vault(key, by=self.actor):
            is_hidden = hidden.covers(chunk.base, chunk.title)
            passages.append(
                {
                    "search": chunk.search,
                    "title": "" if is_hidden else chunk.title,
                    "revision": "" if is_hidden else chunk.revision,
                    "text": withheld_mark(f"a page of knowledge base '{chunk.base}'")
                    if is_hidden
                    else chunk.content,
                }
            )
        return self.render_values({**self.page_values(key), "is_open": True, "passages": passages})
