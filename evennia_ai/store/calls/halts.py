"""Halts: that an NPC is paused or the whole game is stopped, by whom, when and why.

A table of ours rather than Evennia's server variables: it is written in a transaction, noticed by
other processes as every change of an authored thing is, and read without a query.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.models.core import NAME
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import changing

HALTS: Final = "halts"
GAME_REF: Final = ""
"""Stands for the whole game where an NPC's reference would stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """A halt that is in force."""

    npc_ref: str
    """Whom it halts, "" for the whole game."""
    halted_by: str
    halted_at: float
    reason: str = ""
    """Why, "" where nobody said."""

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{'paused' if self.npc_ref else 'stopped'} by {self.halted_by}{why}"


def halts() -> Mapping[str, Halt]:
    """The halts in force by what they halt; no query when it is warm. StoreError: not readable."""
    return _halts.read(None)


def halt(new: Halt) -> None:
    """Halt an NPC or the game; one that is halted already is so by the new one's word.

    StoreError: the database refused, nothing is halted.
    """
    values = {
        "halted_by": new.halted_by[:NAME],
        "halted_at": new.halted_at,
        "reason": new.reason[:NAME],
    }
    with changing(HALTS, f"halting {new.npc_ref or 'the game'}"):
        models.Halt.objects.update_or_create(npc_ref=new.npc_ref, defaults=values)
        _halts.written(None)


def release(npc_ref: str) -> bool:
    """Take a halt back; whether there was one. StoreError: the database refused."""
    with changing(HALTS, f"releasing {npc_ref or 'the game'}"):
        gone, _ = models.Halt.objects.filter(npc_ref=npc_ref).delete()
        _halts.written(None)
    return bool(gone)


def _load(_: None) -> Mapping[str, Halt]:
    return {row.npc_ref: value_of(Halt, row) for row in models.Halt.objects.order_by("pk")}


_halts: Final[Snapshots[None, Mapping[str, Halt]]] = Snapshots(HALTS, _load)
