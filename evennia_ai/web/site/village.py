"""The village: every NPC, how it is doing, and what it used today."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.model_calls import DAY_SECONDS, GAME_REF, Used, halts
from evennia_ai.web.site.door import Doing, ListedNPC, door
from evennia_ai.web.site.page import Page

PAGE_NPCS: Final = 50
MOST_CALLS: Final = 2000
"""Calls of the last day that the shares of caches are read from."""
MOST_SHARES: Final = 24
SHOWN: Final = {
    "": "all",
    "today": "had a turn today",
    "failed": "last turn failed",
    "paused": "paused",
    "never": "never had a turn",
}


class VillagePage(Page):
    """`/ai/`: every NPC."""

    template = "evennia_ai/village.html"

    def told(self) -> dict[str, Any]:
        part = self.request.GET.get("find", "")[:80]
        shown = self.request.GET.get("show", "")
        shown = shown if shown in SHOWN else ""
        now = time.time()
        day = now - now % DAY_SECONDS
        found = door().npcs(part)
        newest = past_turns.newest_of_each([npc.ref for npc in found])
        wanted = [npc for npc in found if _is_shown(shown, npc.ref, newest, day)]
        page, pages = self.paged(len(wanted), PAGE_NPCS)
        here = wanted[(page - 1) * PAGE_NPCS : page * PAGE_NPCS]
        used = model_calls.used_by("npc_ref", day)
        refs = [npc.ref for npc in here]
        doing = door().doing(refs)
        shares = model_calls.cache_shares(refs, since=now - DAY_SECONDS, most=MOST_CALLS)
        game = halts().get(GAME_REF)
        return {
            "find": part,
            "show": shown,
            "page": page,
            "pages": pages,
            "count": len(wanted),
            "stopped": str(game) if game else "",
            "today": _used(model_calls.used(day)),
            "npcs": [
                {
                    **row,
                    "waiting": doing[row["ref"]].waiting if row["ref"] in doing else 0,
                    "silent_because": doing[row["ref"]].silent_because
                    if row["ref"] in doing
                    else "",
                    "cache_shares": shares.get(row["ref"], [])[-MOST_SHARES:],
                }
                for row in _rows(here, newest, used, doing)
            ],
        }

    def beside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "filters": [
                {"key": key, "name": name, "is_on": key == told["show"]}
                for key, name in SHOWN.items()
            ]
        }


def _is_shown(shown: str, ref: str, newest: Mapping[str, TurnLine], day: float) -> bool:
    last = newest.get(ref)
    return {
        "": True,
        "today": last is not None and last.created_at >= day,
        "failed": last is not None and last.state in ("failed", "interrupted"),
        "paused": ref in halts(),
        "never": last is None,
    }[shown]


def _rows(
    npcs: Sequence[ListedNPC],
    newest: Mapping[str, TurnLine],
    used: Mapping[str, Used],
    doing: Mapping[str, Doing],
) -> Iterator[dict[str, Any]]:
    for npc in npcs:
        last = newest.get(npc.ref)
        halt = halts().get(npc.ref)
        yield {
            "ref": npc.ref,
            "name": npc.name,
            "room": npc.room,
            "state": doing[npc.ref].state if npc.ref in doing else "gone",
            "paused": str(halt) if halt else "",
            "last_turn": None
            if last is None
            else {
                "number": last.number,
                "state": last.state,
                "outcome": last.outcome,
                "tokens": last.tokens,
                "at": last.created_at,
            },
            "today": _used(used.get(npc.ref, Used())),
        }


def _used(used: Used) -> dict[str, Any]:
    cached = 100 * used.cached_tokens // used.input_tokens if used.input_tokens else None
    return {
        "calls": used.calls,
        "failures": used.failures,
        "tokens": used.tokens,
        "cached_percent": cached,
    }
