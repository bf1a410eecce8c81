"""The emergency stop: a person halts an NPC or the whole game, and lets go of it again.

First the halt is written down, so that it holds whatever happens next; then what waits is dropped
and what is under way is given up. That NPCs ask no model from then on is `game.models.stop`'s
matter.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evennia.objects.models import ObjectDB
from evennia.utils import logger

from evennia_ai.game.runtime import runtime
from evennia_ai.game.senses.presence import NPC
from evennia_ai.store.calls.halts import GAME_REF, Halt, halt, release


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What came of a stop: answers that were waited for, and calls of models under way."""

    dropped: int
    given_up: int


def stop_all(*, by: str, reason: str = "") -> Stopped:
    """Stop the whole game's NPCs until `start_all`. StoreError: nothing was stopped."""
    why = _halted(GAME_REF, by=by, reason=reason)
    under_way = sum(len(calls) for calls in runtime().counting.under_way.values())
    busy = _minds(runtime().scheduler.busy_keys)
    dropped = sum(npc.ai.attention.stopped(why) for npc in busy)
    runtime().models.give_up(why)
    return Stopped(dropped=dropped, given_up=under_way)


def start_all(*, by: str) -> bool:
    """Let the game's NPCs answer again; whether they were stopped. StoreError: nothing changed."""
    return _released(GAME_REF, by=by)


def pause(npc: NPC, *, by: str, reason: str = "") -> Stopped:
    """Have one NPC ask no model until `resume`. StoreError: it goes on."""
    ref = str(npc.id)
    why = _halted(ref, by=by, reason=reason)
    counting = runtime().counting
    under_way = len(counting.under_way.get(ref, ()))
    dropped = npc.ai.attention.stopped(why)
    counting.give_up_for(ref, why)
    return Stopped(dropped=dropped, given_up=under_way)


def resume(npc: NPC, *, by: str) -> bool:
    """Let a paused NPC go on; whether it was paused. StoreError: it stays paused."""
    return _released(str(npc.id), by=by)


def _halted(npc_ref: str, *, by: str, reason: str) -> str:
    new = Halt(npc_ref=npc_ref, halted_by=by, halted_at=time.time(), reason=reason)
    halt(new)
    logger.log_warn(f"evennia_ai: {_whose(npc_ref)} {new}")
    return str(new)


def _released(npc_ref: str, *, by: str) -> bool:
    was_halted = release(npc_ref)
    if was_halted:
        logger.log_warn(f"evennia_ai: {_whose(npc_ref)} released by {by}")
    return was_halted


def _minds(npc_refs: Iterable[str]) -> Iterable[Any]:
    """The NPCs; whoever is busy is in memory already."""
    return ObjectDB.objects.filter(id__in=[int(ref) for ref in npc_refs])


def _whose(npc_ref: str) -> str:
    return f"NPC {npc_ref}:" if npc_ref else "ALL NPCS:"
