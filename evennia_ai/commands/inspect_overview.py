"""`ai` and `ai/list`: all NPCs of the game in a table, page by page."""

import time
from collections.abc import Iterable, Iterator
from typing import Final

from evennia_ai.commands.strict import CommandError
from evennia_ai.game import overview
from evennia_ai.game.overview import Row, Totals
from evennia_ai.game.stopping import is_stopped
from evennia_ai.text.columns import WIDTH, clipped, hanging, padded, visible

PAGE_NPCS: Final = 20
_WIDTHS: Final = (14, 11, 12, 3, 13, 5, 6)
_HEADS: Final = ("name", "room", "state", "q", "last turn", "calls", "tokens", "model")
_MODEL_WIDTH: Final = WIDTH - sum(_WIDTHS) - len(_WIDTHS)


def overview_lines(part: str, number: int) -> list[str]:
    """One page of the NPCs whose name or room has `part` in it."""
    found = overview.all_npcs(part)
    first = (number - 1) * PAGE_NPCS
    shown = found[first : first + PAGE_NPCS]
    if not shown:
        raise CommandError(_nobody(part, number))
    rows = overview.rows_of(shown, now=time.time())
    return [
        *stop_lines(),
        *_total_lines(overview.totals(len(found)), part),
        _columns(_HEADS),
        "-" * WIDTH,
        *map(_row, rows),
        *_legend(rows),
        *_more(part, number, pages=-(-len(found) // PAGE_NPCS)),
    ]


def stop_lines() -> list[str]:
    """That the whole game is stopped, loudly; nothing where it is not."""
    why = is_stopped()
    if not why:
        return []
    told = f"*** ALL NPCS ARE STOPPED: {visible(why)} ***"
    return [clipped(told, WIDTH), "*** No model is asked for anything. ai/startall ends it. ***"]


def thousands(number: int) -> str:
    """A number in at most six columns."""
    if number < 100_000:
        return str(number)
    return f"{number / 1000:.0f}k" if number < 10_000_000 else f"{number / 1_000_000:.0f}M"


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 call", "2 calls"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def ago(seconds: float) -> str:
    """How long something is past, in at most five columns."""
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def _nobody(part: str, number: int) -> str:
    if number > 1:
        return f"There is no page {number}: there are fewer NPCs."
    if part:
        return f"No NPC with a mind, nor its room, has '{part}' in its name."
    return "There is no NPC with a mind yet; create one: create/drop Oren:evennia_ai.game.npc.AINPC"


def _total_lines(all_of: Totals, part: str) -> Iterator[str]:
    which = f"with '{visible(part)}'" if part else "in the game"
    npcs = f"{counted(all_of.npcs, 'NPC')} {which}"
    yield from hanging(
        f"{npcs}; in all {all_of.answering} answering, {all_of.waiting} waiting; today"
        f" {counted(all_of.calls, 'call')}, {thousands(all_of.tokens)} tokens."
    )


def _row(row: Row) -> str:
    return _columns(
        (
            row.found.name,
            row.found.room or "(nowhere)",
            _state(row),
            str(row.waiting),
            _last(row),
            str(row.calls),
            thousands(row.tokens),
            f"{'!' if row.breaker != 'closed' else ''}{row.model}",
        )
    )


def _state(row: Row) -> str:
    """What it does; whoever cannot answer says why first."""
    states = {
        "played": row.is_played,
        "off": not row.is_on,
        "PAUSED": row.is_paused,
    }
    for state, holds in states.items():
        if holds:
            return state
    if row.answering_seconds is not None:
        return f"answers {ago(row.answering_seconds)}"
    if row.rest_seconds and row.waiting:
        return "rests"
    return "waits" if row.waiting else "idle"


def _last(row: Row) -> str:
    if row.last is None:
        return "-"
    if row.last.ended_at is None:
        return "under way"
    return f"{ago(time.time() - row.last.ended_at)}, {row.last.state}"


def _legend(rows: Iterable[Row]) -> Iterator[str]:
    rows = tuple(rows)
    if any(row.breaker != "closed" for row in rows):
        yield "! this model failed repeatedly and is left alone for a while"
    refused = sum(row.refused for row in rows)
    if refused:
        yield f"{refused} answers were refused today because of limits; see ai/limits"


def _more(part: str, number: int, *, pages: int) -> Iterator[str]:
    if number < pages:
        what = f"{part}/{number + 1}" if part else f"/{number + 1}"
        yield clipped(f"Page {number} of {pages}; the next: ai/list {visible(what)}", WIDTH)


def _columns(texts: Iterable[str]) -> str:
    *cells, model = (visible(text) for text in texts)
    row = " ".join(padded(cell, width) for cell, width in zip(cells, _WIDTHS, strict=True))
    return f"{row} {clipped(model, _MODEL_WIDTH)}"
