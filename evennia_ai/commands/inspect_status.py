"""`ai <npc>`: how an NPC is doing, in words."""

import time
from typing import Any, Final

from evennia_ai.commands.inspect_compact import compaction_lines
from evennia_ai.commands.inspect_limits import today_lines
from evennia_ai.commands.inspect_overview import stop_lines
from evennia_ai.commands.shown import day_and_time
from evennia_ai.game.handler import LastTurn
from evennia_ai.game.tools.choosing import problems_of
from evennia_ai.store.halts import halts
from evennia_ai.text.columns import hanging

_PLACES: Final = {"room": "in rooms", "private": "in private"}


def status_lines(npc: Any) -> list[str]:
    """How an NPC is doing, one line each."""
    status = npc.ai.status()
    busy = "answering now" if status.in_flight else "idle"
    breaker = f", breaker {status.breaker}" if status.breaker else ""
    where = "no model is asked" if status.offline else "a model is asked"
    talks = ", ".join(f"{count} {_PLACES[kind]}" for kind, count in status.conversations.items())
    state = f"{'on' if status.enabled else 'off'}, {busy}, {status.waiting} waiting"
    lines = [
        *stop_lines(),
        f"{npc.key} (#{npc.id}): {state}",
        *_pause_lines(npc),
        f"  answers by     {status.endpoint} ({where}){breaker}",
        f"  card           {status.card or f'none; card/assign {npc.key} = <card> gives one'}",
        f"  conversations  {talks or 'none'}",
        f"  last turn      {_turn_in_words(status.last_turn)}",
    ]
    lines += today_lines(npc, now=time.time())
    lines += [f"  compaction     {line}" for line in compaction_lines(npc)]
    if npc.ai.attention.overflows:
        overflows = npc.ai.attention.overflows
        lines.append(f"  not answered   {overflows} since the start: too much waited")
    if status.unrecorded:
        lines.append(f"  not recorded   {status.unrecorded}: the database is away")
    problems = (*status.problems, *problems_of(npc))
    lines += [f"  problem        {problem}" for problem in problems]
    return [shown for line in lines for shown in hanging(line)]


def _pause_lines(npc: Any) -> list[str]:
    pause = halts().get(npc.ai.ref)
    if pause is None:
        return []
    return [f"  PAUSED         {pause}, {day_and_time(pause.halted_at)}; ai/resume {npc.key}"]


def _turn_in_words(last: LastTurn | None) -> str:
    if last is None:
        return "none yet"
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.number}, {last.state}{outcome}, {day_and_time(last.created_at)}"
