"""The newest turn: of the NPC that last answered the viewer's characters, or of one named NPC.

The pane of the web client (`ai/watch`) opens this page and follows the newest turn.
"""

from typing import Any

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.store import model_calls
from evennia_ai.store.history import turns
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import Page

LAST = "last"


class LastPage(Page):
    """`/ai/last/`: a redirect to the newest turn. The parameter `npc` restricts it to this NPC."""

    template = "evennia_ai/last.html"

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        """Redirect to the turn. Without one, show a page that says so."""
        told = self.page_values()
        if told["address"] and request.GET.get("format") != "json":
            return HttpResponseRedirect(told["address"])
        return self.render_values(told)

    def page_values(self) -> dict[str, Any]:
        ref = self.request.GET.get("npc", "")
        found = _of_npc(ref) if ref else _of_speaker(running_game.character_refs(self.request.user))
        if found is None:
            return {"address": "", "pane": ref or LAST}
        where = reverse("evennia_ai:turn", kwargs={"ref": found[0], "number": found[1]})
        return {"address": f"{where}?pane={ref or LAST}", "pane": ref or LAST}


def _of_npc(ref: str) -> tuple[str, int] | None:
    newest = turns.last_turn(ref)
    return None if newest is None else (ref, newest.number)


def _of_speaker(refs: tuple[str, ...]) -> tuple[str, int] | None:
    return model_calls.newest_turn_for(refs)
