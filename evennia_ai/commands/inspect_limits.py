"""`ai/limits`: what the game, an NPC and players may ask of models, and what they have used."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.commands.called import name_of
from evennia_ai.commands.inspect_overview import counted
from evennia_ai.commands.shown import day_and_time
from evennia_ai.game.limits import Limits, LimitScope
from evennia_ai.game.npc_settings import settings_of
from evennia_ai.game.runtime import runtime
from evennia_ai.llm.allowances import LIMITS
from evennia_ai.prompt.components import Scope
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import DAY_SECONDS
from evennia_ai.text.columns import WIDTH, clipped, visible

MOST_AT_LIMIT: Final = 20


def limit_lines(npc: Any = None) -> list[str]:
    """What may be used and what was, by the game and one NPC, or by whoever is at a limit now."""
    limits = runtime().limits
    lines = ["Limits on calls of models, used of allowed:", *_used(limits, "game", "", "game")]
    if npc is None:
        lines += _usual(limits)
        lines += _at_limit(limits)
        lines += _refused_today("")
    else:
        own = settings_of(npc).limits
        lines += _used(limits, "npc", npc.ai.ref, visible(npc.key), own)
        lines += _refused_today(npc.ai.ref)
    return [clipped(line, WIDTH) for line in lines]


def today_lines(npc: Any, *, now: float) -> list[str]:
    """What an NPC used today and what is left of it, for its status."""
    limits, ref = runtime().limits, npc.ai.ref
    used = model_calls.used(now - now % DAY_SECONDS, Scope(kind="npc", ref=ref))
    all_time = model_calls.spend(ref)
    share = (
        f", {100 * used.cached_tokens // used.input_tokens} % cached" if used.input_tokens else ""
    )
    calls = counted(used.calls, "call")
    told = f"{calls}, {used.input_tokens} tokens in{share}, {used.output_tokens} out"
    lines = [
        f"  today          {told}",
        f"  ever           {counted(all_time.calls, 'call')}, {all_time.tokens} tokens",
    ]
    left = ", ".join(_left(limits, ref, settings_of(npc).limits))
    lines.append(f"  left           {left or 'no limits'}")
    refused = limits.refused(ref)
    return [*lines, f"  refused        {refused} today"] if refused else lines


def _left(limits: Limits, ref: str, own: Mapping[str, int]) -> Iterator[str]:
    allowance, reading = limits.allowance("npc", own), limits.reading("npc", ref)
    for limit in LIMITS:
        most = getattr(allowance, limit)
        if most is not None:
            yield f"{max(0, most - getattr(reading, limit))} {limit.replace('_', ' ')}"


def _used(
    limits: Limits, scope: LimitScope, ref: str, name: str, own: Mapping[str, int] | None = None
) -> Iterator[str]:
    allowance, reading = limits.allowance(scope, own or {}), limits.reading(scope, ref)
    for limit in LIMITS:
        most = getattr(allowance, limit)
        allowed = "no limit" if most is None else str(most)
        mine = " (its own)" if own and limit in own and most == own[limit] else ""
        what = limit.replace("_", " ")
        yield f"  {name:16.16} {what:18} {getattr(reading, limit):>9} of {allowed}{mine}"


def _usual(limits: Limits) -> Iterator[str]:
    kinds: tuple[tuple[LimitScope, str], ...] = (("npc", "each NPC"), ("player", "each player"))
    for scope, name in kinds:
        allowance = limits.allowance(scope)
        told = [
            f"{getattr(allowance, limit)} {limit.replace('_', ' ')}"
            for limit in LIMITS
            if getattr(allowance, limit) is not None
        ]
        yield f"  {name:16} {', '.join(told) or 'no limit'}"


def _at_limit(limits: Limits) -> Iterator[str]:
    found = limits.at_limit()
    for scope, ref, reached in found[:MOST_AT_LIMIT]:
        what = reached.limit.replace("_", " ")
        yield f"  {scope} {visible(name_of(ref))} is at its {reached.most} {what}"
    if len(found) > MOST_AT_LIMIT:
        yield f"  and {len(found) - MOST_AT_LIMIT} more are at a limit"


def _refused_today(npc_ref: str) -> Iterator[str]:
    """Who was refused today, by which limit, how often and when the last time."""
    since = runtime().limits.midnight
    found = model_calls.refused_times(since, npc_ref=npc_ref, limit=MOST_AT_LIMIT + 1)
    if found:
        yield "Refused today, the last first:"
    for one in found[:MOST_AT_LIMIT]:
        who = visible(name_of(one.player_ref)) if one.player_ref else "nobody's words"
        by = "" if npc_ref else f" by {visible(name_of(one.npc_ref))}"
        yield f"  {day_and_time(one.last_at)}  {who}{by}, {_times(one.times)}"
        yield f"      {limit_in_words(one.limit)}"
    if len(found) > MOST_AT_LIMIT:
        yield "  and others before that; ai/log <npc> has each of them"


def limit_in_words(limit: str) -> str:
    """A limit by its scope and name, as builders read it: "player.calls_per_minute"."""
    scope, _, name = limit.partition(".")
    whose = {"player": "the player's", "npc": "the NPC's", "game": "the game's"}.get(scope, scope)
    return visible(f"{whose} {name.replace('_', ' ')}")


def _times(times: int) -> str:
    return "once" if times == 1 else f"{times} times"
