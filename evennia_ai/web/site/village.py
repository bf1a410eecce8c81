"""The list of all NPCs: their states, their last turns, and their use of models today."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evennia_ai.engine.prompt.report import describe_break
from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.overview import NPCRow
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store import model_calls
from evennia_ai.store.history import past_turns, turns
from evennia_ai.store.history.past_turns import TurnLine
from evennia_ai.store.model_calls import DAY_SECONDS, GAME_REF, Used, halts
from evennia_ai.web.site import running_game
from evennia_ai.web.site.looking import seer_for
from evennia_ai.web.site.page import Page

PAGE_NPCS: Final = 50
MOST_CALLS: Final = 2000
"""The most calls of the last day from which the shares of cached tokens are read."""
MOST_TURNS: Final = 10_000
"""The most turns that are searched for NPCs with a turn today, or whose last turn failed."""
MOST_SHARES: Final = 24
POOR_PERCENT: Final = 50
MOST_BROKEN: Final = 5
SHOWN: Final = {
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
        shown = self.request.GET.get("show", "")
        shown = shown if shown in SHOWN else ""
        now = time.time()
        day = now - now % DAY_SECONDS
        found = _found(part, shown, day)
        page, pages = self.requested_page(found.count, PAGE_NPCS)
        here = found.page(page, size=PAGE_NPCS)
        refs = [npc.ref for npc in here]
        used = model_calls.use_by_each("npc_ref", day, among=refs)
        doing = running_game.npc_states(here)
        newest = {ref: one.last for ref, one in doing.items() if one.last is not None}
        shares = model_calls.cache_shares(refs, since=now - DAY_SECONDS, most=MOST_CALLS)
        broken = _broken(newest, shares, seer_of=partial(seer_for, self.request.user))
        game = halts().get(GAME_REF)
        return {
            "find": part,
            "show": shown,
            "page": page,
            "pages": pages,
            "count": found.count,
            "are_more": found.are_more,
            "stopped": str(game) if game else "",
            "today": _used(model_calls.use_since(day)),
            "npcs": [
                {
                    **row,
                    "broken": broken.get(row["ref"], ""),
                    "cache_shares": shares.get(row["ref"], [])[-MOST_SHARES:],
                }
                for row in _rows(here, newest, used, doing)
            ],
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "filters": [
                {"key": key, "name": name, "is_on": key == told["show"]}
                for key, name in SHOWN.items()
            ]
        }


def _broken(
    newest: Mapping[str, TurnLine],
    shares: Mapping[str, Sequence[int]],
    *,
    seer_of: Callable[[str], Seer],
) -> dict[str, str]:
    """Say what broke the cache, for a few NPCs whose last call took little from the cache."""
    poor = [ref for ref in newest if (shares.get(ref) or [100])[-1] < POOR_PERCENT]
    found = {}
    for ref in poor[:MOST_BROKEN]:
        manifest = turns.get_turn(ref, newest[ref].number).manifest
        if manifest.broken_by is not None:
            seen = replace(manifest, broken_by=seer_of(ref).origin(manifest.broken_by))
            found[ref] = describe_break(seen)
    return found


def _found(part: str, shown: str, day: float) -> npc_list.NPCList:
    """Return the NPCs that the search and the filter select."""
    if shown == "today":
        return npc_list.NPCList(part, among=past_turns.refs_since(day, most=MOST_TURNS))
    if shown == "failed":
        return npc_list.NPCList(part, among=past_turns.refs_failed(most=MOST_TURNS))
    if shown == "paused":
        return npc_list.NPCList(part, among=[ref for ref in halts() if ref != GAME_REF])
    return npc_list.NPCList(part, without_turn=shown == "never")


def _rows(
    npcs: Sequence[npc_list.ListedNPC],
    newest: Mapping[str, TurnLine],
    used: Mapping[str, Used],
    doing: Mapping[str, NPCRow],
) -> Iterator[dict[str, Any]]:
    for npc in npcs:
        last = newest.get(npc.ref)
        halt = halts().get(npc.ref)
        yield {
            "ref": npc.ref,
            "name": npc.name,
            "room": npc.room,
            "state": doing[npc.ref].state,
            "waiting": doing[npc.ref].waiting,
            "silent_because": doing[npc.ref].silent_because,
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
