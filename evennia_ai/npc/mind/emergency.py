"""The emergency stop: a person stops one NPC or all NPCs, and lets them answer again.

The stop is committed first, so it survives restarts. Then pending answers are dropped, and running
ones are given up. `npc.model_calls.calls` makes sure that stopped NPCs ask no model.
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
    """The result of a stop: how many answers were dropped, and how many model calls given up."""

    dropped: int
    given_up: int


def stop_all(*, by: Actor, reason: str = "") -> Stopped:
    """Stop all NPCs until `start_all`.

    Raises:
        StoreError: Nothing was stopped.
    """
    why = _halt_npcs(GAME_REF, by=by, reason=reason)
    live = runtime()
    under_way = tuple(live.calls.under_way)
    busy = map(object_of, live.scheduler.busy_keys)
    dropped = sum(npc.ai.attention.stopped(why) for npc in busy if npc is not None)
    return _give_up_calls(under_way, why, dropped=dropped)


def start_all(*, by: Actor) -> bool:
    """Let all NPCs answer again. Return False if they were not stopped.

    Raises:
        StoreError: Nothing changed.
    """
    return _release_npcs(GAME_REF, by=by)


def pause(npc: NPC, *, by: Actor, reason: str = "") -> Stopped:
    """Stop one NPC until `resume`.

    Raises:
        StoreError: The NPC was not stopped.
    """
    ref = str(npc.id)
    why = _halt_npcs(ref, by=by, reason=reason)
    under_way = runtime().calls.of_npc(ref)
    return _give_up_calls(under_way, why, dropped=npc.ai.attention.stopped(why))


def resume(npc: NPC, *, by: Actor) -> bool:
    """Let a paused NPC answer again. Return False if it was not paused.

    Raises:
        StoreError: It stays paused.
    """
    return _release_npcs(str(npc.id), by=by)


def _halt_npcs(npc_ref: str, *, by: Actor, reason: str) -> str:
    new = Halt(npc_ref=npc_ref, halted_by=by.name, halted_at=time.time(), reason=reason)
    add_halt(new, by=by)
    logger.log_warn(f"evennia_ai: {_log_subject(npc_ref)} {new}")
    return str(new)


def _give_up_calls(calls: tuple[CountedCall, ...], why: str, *, dropped: int) -> Stopped:
    """Give up these model calls. Some may have ended already together with the dropped answers."""
    for call in calls:
        call.give_up(why)
    return Stopped(dropped=dropped, given_up=len(calls))


def _release_npcs(npc_ref: str, *, by: Actor) -> bool:
    was_halted = remove_halt(npc_ref, by=by)
    if was_halted:
        logger.log_warn(f"evennia_ai: {_log_subject(npc_ref)} may answer again, released by {by}")
    return was_halted


def _log_subject(npc_ref: str) -> str:
    return f"NPC {npc_ref}:" if npc_ref else "ALL NPCS:"
