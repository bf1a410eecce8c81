"""`evennia-ai status`: how the NPCs of a game are doing, as far as the database knows."""

import contextlib
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.plain_values import plain_value
from evennia_ai.services.llm.money import describe_cost
from evennia_ai.store.model_calls import Used

with contextlib.redirect_stdout(sys.stderr):  # Evennia may print while it is imported.
    from evennia_ai.cli.game.cast import npc_called
    from evennia_ai.npc.mind.npc_list import MOST_LISTED
    from evennia_ai.npc.mind.status import (
        NPCRow,
        NPCStatus,
        stored_game_status,
        stored_page,
        stored_status,
        used_this_month,
    )


def show_npc(wanted: str, *, as_json: bool) -> int:
    """Print the state of one NPC."""
    status = stored_status(npc_called(wanted), now=time.time())
    if as_json:
        write_json(plain_value(status), indent=2)
    else:
        write_lines(map(escape_controls, _npc_lines(status)))
    return 0


def show_game(*, as_json: bool) -> int:
    """Print the state of the game and of all its NPCs."""
    now = time.time()
    game = stored_game_status(now=now)
    page, month = stored_page("", 1, size=MOST_LISTED, now=now), used_this_month(now)
    if as_json:
        told = {"game": game, "month": month, "npcs": page.npcs}
        write_json(plain_value(told), indent=2)
        return 0
    lines = [f"ALL NPCS ARE STOPPED: {game.stopped}"] if game.stopped else []
    more = "more than " if page.are_more else ""
    lines.append(f"NPCs: {more}{page.count}; today {_used(game.today)}")
    if cost := describe_cost(month.nanodollars, month.unpriced_calls):
        lines.append(f"this month {cost}")
    lines += [f"{_state(row)}; {_last_turn(row)}; today {_used(row.today)}" for row in page.npcs]
    write_lines(map(escape_controls, lines))
    return 0


def _npc_lines(status: NPCStatus) -> Iterator[str]:
    yield _state(status)
    card = status.card
    yield f"  card           {f'{card.name}, revision {card.revision}' if card else 'none'}"
    counts = [f"{count} {kind}" for kind, count in status.conversations.items()]
    yield f"  conversations  {', '.join(counts) or 'none'}"
    yield f"  last turn      {_last_turn(status)}"
    if status.cut_because:
        yield f"  PROMPT CUT     {status.cut_because}"
    yield f"  today          {_used(status.today)}"
    yield f"  this month     {_used(status.month)}"
    yield f"  ever           {_used(status.ever)}"
    yield from (f"  problem        {problem}" for problem in status.problems)


def _state(row: NPCRow) -> str:
    return f"{row.name} (#{row.ref}): {row.pause or row.state}"


def _last_turn(row: NPCRow) -> str:
    last = row.last_turn
    if last is None:
        return "no turn yet"
    at = datetime.fromtimestamp(last.created_at, tz=UTC)
    return f"turn {last.number} {last.outcome or last.state}, {at:%Y-%m-%d %H:%M} UTC"


def _used(used: Used) -> str:
    cached = "" if used.cached_percent is None else f" ({used.cached_percent} % cached)"
    cost = describe_cost(used.nanodollars, used.unpriced_calls)
    told = f"calls {used.calls}, tokens in {used.input_tokens}{cached}, out {used.output_tokens}"
    return f"{told}, {cost}" if cost else told
