"""Facts of the moment: about an NPC, its place and the time, and the memories that it may recall.

Standing facts are part of the NPC's view. Passing facts, the time and the memories are read in each
turn. Only memories about the speaker, about characters that the NPC sees, and about the world are
candidates. Nothing here makes a query once the caches are filled.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django.utils.module_loading import import_string
from evennia.utils import gametime, logger

from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment
from evennia_ai.engine.prompt.conditions import (
    EVENT_KIND,
    GENERATION_KIND,
    NORMAL,
    NPC_KEY,
    NPC_TAGS,
    ROOM_KEY,
    ROOM_TAGS,
    SPEAKER_KIND,
    ZONES,
    Fact,
    Facts,
)
from evennia_ai.npc.recording.heard import game_time
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, ZONE, bystanders, can_see, known_ref
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.store import memories

SPEAKER_RANK: Final = "speaker.rank"
SPEAKER_NAME: Final = "speaker.name"
HOUR: Final = "time.hour"
MONTH: Final = "time.month"
PART: Final = "time.part"


# The parts of the day, each with the hour at which it begins.
_PARTS: Final = ((22, "night"), (18, "evening"), (10, "day"), (6, "morning"), (0, "night"))
_PLAIN: Final = (str, bool, int, float)
# These names are needed each time a view is used, and rarely change.
_named: Final = lru_cache(maxsize=1024)(plain_name)


def standing_facts(npc: NPC) -> dict[str, Fact]:
    """Return names, tags and zones of `npc` and its room. Makes no query once cached."""
    facts: dict[str, Fact] = {
        GENERATION_KIND: NORMAL,
        NPC_KEY: _named(npc.key),
        NPC_TAGS: _tags(npc),
    }
    room = npc.location
    if room is None:
        return facts
    zones = room.tags.get(category=ZONE, return_list=True)
    return {
        **facts,
        ROOM_KEY: _named(room.key),
        ROOM_TAGS: _tags(room),
        ZONES: tuple(sorted(map(str, zones))),
    }


def passing_facts(npc: NPC, event: Event | None, *, paths: tuple[str, ...]) -> dict[str, Fact]:
    """Return the facts of this moment. Those from the game's functions at `paths` have priority."""
    return {**_event_facts(event), **_time_facts(), **_told_by_game(npc, event, paths)}


def _event_facts(event: Event | None) -> dict[str, Fact]:
    if event is None:
        return {}
    if not event.speaker_ref:
        return {EVENT_KIND: event.kind}
    return {
        EVENT_KIND: event.kind,
        SPEAKER_KIND: "npc" if event.speaker_rank == "NPC" else "player",
        SPEAKER_RANK: event.speaker_rank,
        SPEAKER_NAME: event.speaker_name,
    }


def _time_facts() -> dict[str, Fact]:
    """Return month, hour and part of the day in game time. Empty outside the calendar."""
    now = game_time()
    return {} if now is None else {MONTH: now.month, **_facts_at(now.hour)}


def _facts_at(hour: int) -> dict[str, Fact]:
    return {HOUR: hour, PART: next(part for start, part in _PARTS if hour >= start)}


def at_hour(inputs: Inputs, hour: int) -> Inputs:
    """Return inputs as if it were this hour of the same day in the game, from 0 to 23.

    Facts of the moment that are already texts stay as they are.
    """
    now = inputs.now
    if now:
        now = datetime.fromisoformat(now).replace(hour=hour, minute=0).isoformat(timespec="seconds")
    return replace(inputs, now=now, facts={**inputs.facts, **_facts_at(hour)})


def _tags(thing: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(str, thing.tags.all())))


def _told_by_game(npc: NPC, event: Event | None, paths: tuple[str, ...]) -> dict[str, Fact]:
    facts: dict[str, Fact] = {}
    for path, function in _import_functions(paths):
        try:
            told = function(npc, event)
        except Exception as error:  # the game's own code may raise anything
            _log(path, f"raised {type(error).__name__}: {error}")
            continue
        facts.update(_valid_facts(path, told))
    return facts


@lru_cache(maxsize=8)
def _import_functions(paths: tuple[str, ...]) -> tuple[tuple[str, Callable[..., Any]], ...]:
    """Return the functions at these dotted paths. Log and skip those that cannot be imported."""
    found = []
    for path in paths:
        try:
            function = import_string(path)
        except Exception as error:  # importing the game's module runs its code
            _log(path, f"cannot be imported: {error}")
            continue
        if callable(function):
            found.append((path, function))
        else:
            _log(path, "is not a function")
    return tuple(found)


def _valid_facts(path: str, told: Any) -> Facts:
    """Return the valid facts that a function of the game returned, and log the others."""
    if not isinstance(told, Mapping):
        _log(path, f"returned {type(told).__name__} instead of a dictionary")
        return {}
    facts: dict[str, Fact] = {}
    for name, value in told.items():
        fact = _fact(value)
        if fact is None or not isinstance(name, str):
            _log(path, f"returned {name!r} as {type(value).__name__}, which cannot be a fact")
        else:
            facts[name] = fact
    return facts


def _fact(value: Any) -> Fact | None:
    if isinstance(value, _PLAIN):
        return value
    several = isinstance(value, list | tuple | set | frozenset)
    if not several or not all(isinstance(text, str) for text in value):
        return None
    return tuple(sorted(value) if isinstance(value, set | frozenset) else value)


def _log(path: str, problem: str) -> None:
    logger.log_err(f"evennia_ai: EVENNIA_AI_LORE_FACTS: {path} {problem}; it is ignored")


_SECONDS: Final = 3600


def hours_now() -> float:
    """Return the game time in hours, which is the unit of memories."""
    return round(gametime.gametime(absolute=True) / _SECONDS, 3)


def moment(event: Event | None) -> Moment:
    """Return the game time, and the speaker if the event is private."""
    confidant = event.known_ref if event is not None and event.private else ""
    return Moment(hours=hours_now(), confidant_ref=confidant)


def candidates(npc: NPC, event: Event | None) -> tuple[Memory, ...]:
    """Return the memories of `npc` that this turn may recall."""
    held = memories.held_by(str(npc.id))
    if not held.memories:
        return ()
    present = [
        ref
        for other in bystanders(npc)
        if held.is_about(ref := known_ref(npc, other)) and can_see(npc, other)
    ]
    return held.candidates(speaker_ref=event.known_ref if event else "", present_refs=present)
