"""Lines: what one line of somebody may set off, through however many NPCs, and for how long.

What an NPC says because of a line belongs to it, and so does what other NPCs answer to that. All
of it counts against the line: the NPCs that answer, and every call of a model. NPCs that hear the
same line share its count. In a room NPCs answer each other for a while without a person saying
anything (`Chains`); a person's word begins anew, and so does the first word after a long silence.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

from evennia_ai.game.senses.events import HEARD, NOBODYS, Event, Line, payer_of

SAME_SECONDS: Final = 5.0
"""How long after a line somebody may hear it late: the recorder is slow, never that slow."""

MOST_KNOWN: Final = 1024

_now: Final[ContextVar[Line | None]] = ContextVar("evennia_ai_line", default=None)


@dataclass(frozen=True, slots=True)
class _Known:
    """A line that was just heard, and by whom."""

    line: Line
    at: float
    heard_by: set[str] = field(default_factory=set)


class Lines:
    """The lines of this moment; `most_npcs` and `most_calls` are what one of them may set off."""

    def __init__(self, *, seconds: Callable[[], float], most_npcs: int, most_calls: int) -> None:
        self._seconds: Final = seconds
        self._most_npcs: Final = most_npcs
        self._most_calls: Final = most_calls
        self._known: OrderedDict[tuple[str, ...], _Known] = OrderedDict()

    def traced(self, event: Event, *, npc_ref: str) -> Event:
        """The event as this NPC perceives it, with the line that it is, or that led to it."""
        if event.line is not None:
            return event
        if event.kind in NOBODYS or event.hops:
            return replace(event, line=Line(player_ref=payer_of(event)))
        said = event.language or event.text
        key = (event.room_ref, event.speaker_ref, event.kind, said)
        now, known = self._seconds(), self._known.get(key)
        if known is None or npc_ref in known.heard_by or now - known.at > SAME_SECONDS:
            self._known.pop(key, None)
            known = self._known[key] = _Known(Line(player_ref=payer_of(event)), now)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)
        known.heard_by.add(npc_ref)
        return replace(event, line=known.line)

    def why_spent(self, event: Event) -> str:
        """Why no model is asked any more because of the line, "" while one may be."""
        line = event.line
        if line is None or line.calls < self._most_calls:
            return ""
        return f"one line set off {line.calls} calls of models already (EVENNIA_AI_LINE_CALLS)"

    def why_silent(self, event: Event, *, npc_ref: str) -> str:
        """Why this NPC does not answer what the line led to; "": it does, and counts."""
        line = event.line
        if line is None:
            return ""
        if npc_ref not in line.npcs and len(line.npcs) >= self._most_npcs:
            return f"{len(line.npcs)} NPCs answer one line already (EVENNIA_AI_LINE_NPCS)"
        spent = self.why_spent(event)
        if not spent:
            line.npcs.add(npc_ref)
        return spent


@contextmanager
def because_of(event: Event) -> Iterator[None]:
    """While it lasts, what an NPC says or does belongs to the line that led to `event`."""
    token = _now.set(event.line)
    try:
        yield
    finally:
        _now.reset(token)


def line_of(hops: int) -> Line | None:
    """The line that what is said or done now belongs to, where an NPC says or does it."""
    return _now.get() if hops else None


MOST_ROOMS: Final = 4096


@dataclass(frozen=True, slots=True)
class _Chain:
    began_at: float
    newest_at: float


class Chains:
    """The talk of NPCs in all rooms; `budget_seconds` is how long it goes on by itself."""

    def __init__(self, *, seconds: Callable[[], float], budget_seconds: float) -> None:
        self._seconds: Final = seconds
        self._budget_seconds: Final = budget_seconds
        self._of_room: OrderedDict[str, _Chain] = OrderedDict()

    def heard(self, event: Event) -> None:
        """Something was perceived in a room; however many NPCs perceived it."""
        if event.private or event.kind not in HEARD:
            return
        now = self._seconds()
        known = self._of_room.pop(event.room_ref, None)
        goes_on = event.hops and known and now - known.newest_at <= self._budget_seconds
        self._of_room[event.room_ref] = _Chain(known.began_at if goes_on and known else now, now)
        if len(self._of_room) > MOST_ROOMS:
            self._of_room.popitem(last=False)

    def is_over(self, room_ref: str) -> bool:
        """Whether the NPCs there have talked long enough by themselves."""
        known = self._of_room.get(room_ref)
        return known is not None and self._seconds() - known.began_at > self._budget_seconds
