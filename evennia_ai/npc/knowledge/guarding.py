"""Guarding: which knowledge bases an NPC may search, and which of them it must guard.

An NPC that guards a base gets only safe summaries or hints from it. Locks are checked for the NPC
itself, with its own permissions. A superuser NPC does not bypass them. If a lock raises an error,
the NPC may not search the base, and must guard it.

When a lock makes an NPC guard a base, that is stored. It then stays so when the NPC's tags change,
because any builder can change a tag. Only a person who may change the base can end the guard.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from evennia.locks.lockhandler import check_lockstring
from evennia.utils import logger

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.senses.presence import NPC, scopes_of
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.knowledge.backend import safe_hint_of
from evennia_ai.store.knowledge.knowledge_bases import bases_for, held_refs, hold_npc
from evennia_ai.store.knowledge.knowledge_bases import list_bases as all_bases

SEARCH: Final = "search"
RESTRICTED: Final = "restricted"


def searchable_bases(npc: NPC, conversation: ConversationRef | None) -> tuple[BaseInfo, ...]:
    """Return the knowledge bases that the NPC may search, sorted by key.

    Cached bases need no query.

    They are assigned to the NPC, its place or the conversation.
    """
    return tuple(
        info for info in bases_for(_scopes(npc, conversation)) if may_search(npc, info.locks)
    )


def may_search(npc: NPC, locks: str) -> bool:
    """True if the lock string of a knowledge base or page lets the NPC search it."""
    return _passes_lock(npc, locks, SEARCH, where_it_fails=False)


def must_guard(npc: NPC, info: BaseInfo) -> bool:
    """True if the NPC must guard the knowledge base and gets only safe summaries of it.

    If the lock holds for some NPCs and not for others, the first True is stored.
    """
    if not info.restricted:
        return False
    is_known = str(npc.id) in held_refs(info.key)
    if is_known or not is_held_by_lock(npc, info):
        return is_known
    if names_some(info):
        _store_guard(npc, info)
    return True


def is_held_by_lock(npc: NPC, info: BaseInfo) -> bool:
    """True if the knowledge base's lock says now that the NPC must guard it."""
    return _passes_lock(npc, info.locks, RESTRICTED, where_it_fails=True)


def names_some(info: BaseInfo) -> bool:
    """True if the knowledge base has a lock that makes only some NPCs guard it."""
    parts = info.locks.split(";")
    return info.restricted and any(part.strip().startswith(f"{RESTRICTED}:") for part in parts)


def record_guards(npc: NPC) -> None:
    """Store which knowledge bases this NPC must guard now.

    Few games have bases with such a lock.
    """
    for info in all_bases():
        if names_some(info):
            must_guard(npc, info)


def _store_guard(npc: NPC, info: BaseInfo) -> None:
    try:
        hold_npc((info.key,), str(npc.id), by=THE_GAME)
    except StoreError as error:  # the NPC guards the knowledge base now; the next check stores it
        logger.log_err(
            f"evennia_ai: could not store that NPC {npc.id} guards '{info.key}': {error}"
        )


def guarded_keys(npc: NPC, bases: Iterable[BaseInfo]) -> frozenset[str]:
    """Return the keys of those knowledge bases that the NPC must guard."""
    return frozenset(info.key for info in bases if must_guard(npc, info))


def bases_for_npc(npc: NPC, bases: Iterable[BaseInfo]) -> tuple[BaseInfo, ...]:
    """Return the knowledge bases as the NPC may know them: those that it guards have a safe hint.

    Makes no query once cached.
    """
    return tuple(
        replace(info, hint=safe_hint_of(info.key)) if must_guard(npc, info) else info
        for info in bases
    )


def _scopes(npc: NPC, conversation: ConversationRef | None) -> tuple[Scope, ...]:
    if conversation is None:
        return scopes_of(npc)
    return (*scopes_of(npc), Scope(kind="conversation", ref=str(conversation.id)))


def _passes_lock(npc: NPC, locks: str, access: str, *, where_it_fails: bool) -> bool:
    if not locks:
        return True
    try:
        return bool(
            check_lockstring(npc, locks, no_superuser_bypass=True, default=True, access_type=access)
        )
    except Exception as error:  # a lock function may be the game's own code
        problem = f"the lock {locks!r} raised an error for NPC {npc.id}"
        logger.log_err(f"evennia_ai: {problem}: {type(error).__name__}")
        return where_it_fails
