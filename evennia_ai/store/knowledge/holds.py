"""Holds: which NPCs guard a knowledge base for good, since its lock held them once.

A hold ends by `release` alone. It is read without a query, also in other processes.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.errors import NotStoredError
from evennia_ai.store.core.rows import value_of
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.core.state import KNOWLEDGE, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """An NPC that guards a base for good."""

    npc_ref: str
    held_since: float
    """In epoch seconds."""
    locks: tuple[str, ...]
    """Those with which bases of this key were removed."""


def held_refs(key: str) -> frozenset[str]:
    """The NPCs that guard the base of this key for good. Warm, without a query."""
    return _held.read(key)


def holds(key: str) -> tuple[Hold, ...]:
    """The same with all that is known of each, the oldest first."""
    rows = models.KnowledgeHold.objects.filter(base_key=key).order_by("pk")
    return tuple(value_of(Hold, row, locks=tuple(row.locks.splitlines())) for row in rows)


def hold(keys: Iterable[str], npc_ref: str) -> None:
    """Have an NPC guard these bases for good; again changes nothing."""
    with changing(KNOWLEDGE, f"holding NPC {npc_ref}"):
        for key in keys:
            models.KnowledgeHold.objects.get_or_create(
                base_key=key, npc_ref=npc_ref, defaults={"held_since": time.time()}
            )
            _held.written(key)


def release(key: str, npc_ref: str) -> None:
    """Let an NPC go; NotStoredError: it does not guard the base for good."""
    with changing(KNOWLEDGE, f"letting NPC {npc_ref} go"):
        gone, _ = models.KnowledgeHold.objects.filter(base_key=key, npc_ref=npc_ref).delete()
        if not gone:
            raise NotStoredError(f"hold of knowledge base '{key}'", npc_ref)
        _held.written(key)


def base_removed(key: str, locks: str) -> None:
    """The current transaction removes a base with this lock: its holds stay, and remember it."""
    for row in models.KnowledgeHold.objects.filter(base_key=key) if locks else ():
        known = row.locks.splitlines()
        one_line = " ".join(locks.split())
        row.locks = "\n".join(dict.fromkeys([*known, one_line]))
        row.save(update_fields=["locks"])


def _load(key: str) -> frozenset[str]:
    rows = models.KnowledgeHold.objects.filter(base_key=key)
    return frozenset(rows.values_list("npc_ref", flat=True))


_held: Final = Snapshots(KNOWLEDGE, _load)
