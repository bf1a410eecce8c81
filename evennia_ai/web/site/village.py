"""The list of all NPCs: their states, their last turns, and their use of models today."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from evennia_ai.npc.mind.status import Filter, stored_game_status, stored_page
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import Page

PAGE_NPCS: Final = 50
SHOWN: Final[Mapping[Filter, str]] = {
    "": "all",
    "today": "had a turn today",
    "failed": "last turn failed",
    "paused": "paused",
    "never": "never had a turn",
}


class VillagePage(Page):
    """`/ai/`: the list of all NPCs."""

    template = "evennia_ai/village.html"

    def page_values(self) -> dict[str, Any]:
        part = self.request.GET.get("find", "")[:80]
        asked = self.request.GET.get("show", "")
        which = cast(Filter, asked if asked in SHOWN else "")
        now = time.time()
        seer_of = partial(seer_for, self.request.user)
        number = self.requested_number()
        page = stored_page(part, number, size=PAGE_NPCS, now=now, which=which, seer_of=seer_of)
        return {
            "find": part,
            "show": which,
            "page": page.number,
            "pages": page.pages,
            "count": page.count,
            "are_more": page.are_more,
            "game": stored_game_status(now=now),
            "npcs": running_game.with_now(page.npcs),
            "shares": page.shares,
            "breaks": page.breaks,
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "filters": [
                {"key": key, "name": name, "is_on": key == told["show"]}
                for key, name in SHOWN.items()
            ]
        }
