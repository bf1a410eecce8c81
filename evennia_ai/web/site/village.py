"""The home page: rooms with the NPCs in them, what each said last, problems, and today's use."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from evennia_ai.npc.mind.home import stored_home
from evennia_ai.npc.mind.status import Filter
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import LivePage

SHOWN: Final[Mapping[Filter, str]] = {
    "": "all",
    "today": "had a turn today",
    "failed": "last turn failed",
    "paused": "paused",
    "never": "never had a turn",
}


class VillagePage(LivePage):
    """`/ai/`: the NPCs of the game in their rooms."""

    template = "evennia_ai/village.html"

    def page_values(self) -> dict[str, Any]:
        part = self.request.GET.get("find", "")[:80]
        asked = self.request.GET.get("show", "")
        which = cast(Filter, asked if asked in SHOWN else "")
        seer_of = partial(seer_for, self.request.user)
        stored = stored_home(
            part, self.requested_number(), now=time.time(), which=which, seer_of=seer_of
        )
        home = running_game.home(stored)
        page = home.page
        return {
            "find": part,
            "show": which,
            "page": page.number,
            "pages": page.pages,
            "count": page.count,
            "are_more": page.are_more,
            "game": home.game,
            "problems": home.problems,
            "rooms": home.rooms,
            "npcs": page.npcs,
            "lines": home.lines,
            "pictures": home.pictures,
            "shares": page.shares,
            "breaks": page.breaks,
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "filters": [
                {"key": key, "name": name, "is_on": key == told["show"]}
                for key, name in SHOWN.items()
            ],
            "by_ref": {npc.ref: npc for npc in told["npcs"]},
        }
