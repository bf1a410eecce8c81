"""Stopping: while the game is stopped or an NPC is paused, no model is asked for anything.

The halts are in the database, so they hold over a reload, and are read without a query. Every call
of a model (`game.models.calls`) asks here first; what is under way is given up by `game.emergency`.
"""

from collections.abc import Mapping

from evennia.utils import logger

from evennia_ai.errors import ModelError, StoreError
from evennia_ai.game.senses.presence import NPC
from evennia_ai.store.calls.halts import GAME_REF, Halt, halts


class ModelStopped(ModelError):  # noqa: N818 - named as its siblings are
    """No model is asked, because a person stopped it; `why` says who, and why."""

    def __init__(self, endpoint: str, why: str) -> None:
        self.why = why
        super().__init__(endpoint, f"is not asked: {why}")


def is_stopped() -> str:
    """Who stopped the whole game and why, in words; "" while it runs."""
    return why_halted(GAME_REF)


def is_paused(npc: NPC) -> bool:
    """Whether this NPC alone is paused."""
    return str(npc.id) in _in_force()


def why_halted(npc_ref: str) -> str:
    """Why this NPC may ask no model now: "stopped by Mira: ...", "paused by ..."; "" if it may."""
    known = _in_force()
    halt = known.get(GAME_REF) or known.get(npc_ref)
    return str(halt) if halt is not None else ""


def _in_force() -> Mapping[str, Halt]:
    """The halts; where the database cannot be read, what was asked is not refused."""
    try:
        return halts()
    except StoreError as error:
        logger.log_err(f"evennia_ai: it is not known whether NPCs are stopped: {error}")
        return {}
