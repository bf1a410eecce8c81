"""The page of an NPC's memories."""

from typing import Any, Final

from evennia_ai.web.site import running_game
from evennia_ai.web.site.mind import refuse_unknown
from evennia_ai.web.site.page import Page, name_of

PAGE_MEMORIES: Final = 50


class MemoryPage(Page):
    """`/ai/npc/<ref>/memory/`: what an NPC remembers, in the order of `ai/memory`."""

    template = "evennia_ai/memory.html"

    def page_values(self, ref: str) -> dict[str, Any]:
        refuse_unknown(ref)
        part = self.request.GET.get("find", "")[:80]
        all_of = running_game.memories(ref, account=self.request.user)
        found = [one for one in all_of if part.casefold() in one.text.casefold()]
        page, pages = self.requested_page(len(found), PAGE_MEMORIES)
        return {
            "ref": ref,
            "name": name_of(ref),
            "find": part,
            "count": len(found),
            "page": page,
            "pages": pages,
            "memories": found[(page - 1) * PAGE_MEMORIES : page * PAGE_MEMORIES],
        }
