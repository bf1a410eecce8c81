"""The live page: what NPCs are asked and answer right now, and the stop of all NPCs."""

import time
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import FormatError
from evennia_ai.npc.mind import npc_list
from evennia_ai.services.llm.arrival import cut_in_words
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns
from evennia_ai.store.model_calls import DAY_SECONDS, GAME_REF, halts
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import ADMIN, Page, actor_of

MOST_TURNS: Final = 50
MOST_REFUSED: Final = 20
MOST_CALLS: Final = 30


class WatchPage(Page):
    """`/ai/live/`: the newest turns and calls of all NPCs. A repeated request gets 304 if nothing
    is new.
    """

    template = "evennia_ai/watch.html"

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        told = self.page_values()
        if request.headers.get("If-None-Match") == told["tag"]:
            return HttpResponse(status=304)
        return self.render_values(told)

    def page_values(self) -> dict[str, Any]:
        newest = past_turns.newest_of_all(MOST_TURNS)
        now = time.time()
        day = now - now % DAY_SECONDS
        used = model_calls.use_since(day)
        refused = model_calls.refused_times(day, limit=MOST_REFUSED)
        calls = model_calls.newest_calls(MOST_CALLS)
        told_of = {
            *(line.npc_ref for line in newest),
            *(one.npc_ref for one in refused),
            *(call.npc_ref for call in calls),
        }
        names = npc_list.npc_names(told_of | set(halts()))
        game = halts().get(GAME_REF)
        moment: float = max((line.ended_at or line.created_at for line in newest), default=0.0)
        return {
            "tag": f'"{moment}-{used.calls}-{len(halts())}"',
            "stopped": str(game) if game else "",
            "paused": [
                {"ref": ref, "name": names.get(ref, f"#{ref}"), "why": str(halt)}
                for ref, halt in halts().items()
                if ref != GAME_REF
            ],
            "today": {"calls": used.calls, "failures": used.failures, "tokens": used.tokens},
            "refused": [
                {
                    "name": names.get(one.npc_ref, f"#{one.npc_ref}"),
                    "limit": one.limit,
                    "times": one.times,
                    "at": one.last_at,
                }
                for one in refused
            ],
            "breakers": [
                {"model": name, "state": state}
                for name, state in running_game.breaker_states().items()
            ],
            "cut": [
                {
                    "name": names.get(call.npc_ref, f"#{call.npc_ref}"),
                    "ref": call.npc_ref,
                    "turn": call.turn,
                    "why": cut_in_words(
                        counted=call.input_tokens, whole=call.whole_tokens, profile=call.profile
                    ),
                }
                for call in {call.npc_ref: call for call in reversed(calls)}.values()
                if call.whole_tokens is not None
            ],
            "calls": [
                {
                    "ref": call.npc_ref,
                    "name": names.get(call.npc_ref, f"#{call.npc_ref}"),
                    "role": call.role,
                    "model": call.model or call.profile,
                    "turn": call.turn,
                    "at": call.started_at,
                    "seconds": call.seconds,
                    "input_tokens": call.input_tokens,
                    "whole_tokens": call.whole_tokens,
                    "cached_tokens": call.cached_tokens,
                    "output_tokens": call.output_tokens,
                    "outcome": call.outcome,
                }
                for call in calls
            ],
            "turns": [
                {
                    "ref": line.npc_ref,
                    "name": names.get(line.npc_ref, f"#{line.npc_ref}"),
                    "number": line.number,
                    "state": line.state,
                    "outcome": line.outcome,
                    "tokens": line.tokens,
                    "at": line.created_at,
                    "seconds": None if line.ended_at is None else line.ended_at - line.created_at,
                }
                for line in newest
            ],
        }


class StopView(Page):
    """`/ai/live/stop/`: stop all NPCs, or start them again. Only POST, and only for Admins."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Stop or start all NPCs, as the field `do` says."""
        acts = {"stop": running_game.stop_all, "start": running_game.start_all}
        act = acts.get(request.POST.get("do", ""))
        if act is None:
            raise FormatError("form", f"do must be one of {', '.join(acts)}; nothing was changed")
        act(by=actor_of(request, ADMIN))
        return HttpResponseRedirect(reverse("evennia_ai:watch"))
