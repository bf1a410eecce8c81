"""The emergency stop: a person halts an NPC or the whole game, and lets go of it again.

First the halt is written down, so that it holds whatever happens next; then what waits is dropped
and what is under way is given up. That NPCs ask no model from then on is `game.models.calls`'s
matter.
"""

import time
from dataclasses import dataclass

from evennia.utils import logger

from evennia_ai.engine.actors import Actor
from evennia_ai.npc.model_calls.calls import CountedCall
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.store.model_calls import GAME_REF, Halt, add_halt, remove_halt


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What came of a stop: answers that were waited for, and calls of models under way."""

    dropped: int
    given_up: int


def stop_all(*, by: Actor, reason: str = "") -> Stopped:
    """Stop the whole game's NPCs until `start_all`. StoreError: nothing was stopped."""
    why = _halted(GAME_REF, by=by, reason=reason)
    live = runtime()
    under_way = tuple(live.calls.under_way)
    busy = map(object_of, live.scheduler.busy_keys)
    dropped = sum(npc.ai.attention.stopped(why) for npc in busy if npc is not None)
    return _given_up(under_way, why, dropped=dropped)


def start_all(*, by: Actor) -> bool:
    """Let the game's NPCs answer again; whether they were stopped. StoreError: nothing changed."""
    return _released(GAME_REF, by=by)


def pause(npc: NPC, *, by: Actor, reason: str = "") -> Stopped:
    """Have one NPC ask no model until `resume`. StoreError: it goes on."""
    ref = str(npc.id)
    why = _halted(ref, by=by, reason=reason)
    under_way = runtime().calls.of_npc(ref)
    return _given_up(under_way, why, dropped=npc.ai.attention.stopped(why))


def resume(npc: NPC, *, by: Actor) -> bool:
    """Let a paused NPC go on; whether it was paused. StoreError: it stays paused."""
    return _released(str(npc.id), by=by)


def _halted(npc_ref: str, *, by: Actor, reason: str) -> str:
    new = Halt(npc_ref=npc_ref, halted_by=by.name, halted_at=time.time(), reason=reason)
    add_halt(new, by=by)
    logger.log_warn(f"evennia_ai: {_whose(npc_ref)} {new}")
    return str(new)


def _given_up(calls: tuple[CountedCall, ...], why: str, *, dropped: int) -> Stopped:
    """Give up these calls, of which some have ended with the turn that was dropped."""
    for call in calls:
        call.give_up(why)
    return Stopped(dropped=dropped, given_up=len(calls))


def _released(npc_ref: str, *, by: Actor) -> bool:
    was_halted = remove_halt(npc_ref, by=by)
    if was_halted:
        logger.log_warn(f"evennia_ai: {_whose(npc_ref)} released by {by}")
    return was_halted


def _whose(npc_ref: str) -> str:
    return f"NPC {npc_ref}:" if npc_ref else "ALL NPCS:"
