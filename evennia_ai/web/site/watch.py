"""The live page: what NPCs are asked and answer right now, and the stop of all NPCs."""

import time
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.npc.mind.status import game_log, stored_game_status
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import ADMIN, LivePage, Page, actor_of


class WatchPage(LivePage):
    """`/ai/live/`: the newest turns and calls of all NPCs."""

    template = "evennia_ai/watch.html"
    section = "watch"

    def page_values(self) -> dict[str, Any]:
        now = time.time()
        game = replace(stored_game_status(now=now), now=running_game.game_state())
        return {"game": game, "log": game_log(now=now)}


class StopView(Page):
    """`/ai/live/stop/`: stop all NPCs, or start them again. Only POST, and only for Admins."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Stop or start all NPCs, as the field `do` says."""
        acts = {"stop": running_game.stop_all, "start": running_game.start_all}
        act = self.act_in_form(acts)
        act(by=actor_of(request, ADMIN))
        page = "village" if request.POST.get("back") == "home" else "watch"
        return HttpResponseRedirect(reverse(f"evennia_ai:{page}"))
