"""Guarding: which knowledge bases an NPC may search, and which of them it must guard.

A lock is asked as the NPC itself, with its own permissions; nobody passes it by being a superuser.
One that cannot be asked lets the NPC into nothing, and holds it to everything. Whom a lock once
held stays held, whatever becomes of its tags: a tag is changed by any builder, and a guard ends by
the word of somebody who may change the base.
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


def searchable(npc: NPC, conversation: ConversationRef | None) -> tuple[BaseInfo, ...]:
    """The bases that are bound to the NPC, its place or the conversation and let it search them.

    By their keys; warm, without a query.
    """
    return tuple(
        info for info in bases_for(_scopes(npc, conversation)) if may_search(npc, info.locks)
    )


def may_search(npc: NPC, locks: str) -> bool:
    """True if the lock string of a base or a page lets the NPC find it."""
    return _allows(npc, locks, SEARCH, where_it_fails=False)


def is_held(npc: NPC, info: BaseInfo) -> bool:
    """True if the NPC gets nothing but safe summaries of a base.

    Whom a lock holds that names some and not others is written down the first time.
    """
    if not info.restricted:
        return False
    is_known = str(npc.id) in held_refs(info.key)
    if is_known or not is_held_by_lock(npc, info):
        return is_known
    if names_some(info):
        _keep(npc, info)
    return True


def is_held_by_lock(npc: NPC, info: BaseInfo) -> bool:
    """True if the lock of a base says so now."""
    return _allows(npc, info.locks, RESTRICTED, where_it_fails=True)


def names_some(info: BaseInfo) -> bool:
    """True if the base is restricted for those whom its lock says, and not for everybody."""
    parts = info.locks.split(";")
    return info.restricted and any(part.strip().startswith(f"{RESTRICTED}:") for part in parts)


def notice(npc: NPC) -> None:
    """Write down which bases the NPC must guard now; few games have one that names some."""
    for info in all_bases():
        if names_some(info):
            is_held(npc, info)


def _keep(npc: NPC, info: BaseInfo) -> None:
    try:
        hold_npc((info.key,), str(npc.id), by=THE_GAME)
    except StoreError as error:  # it is held now, and is looked at again the next time
        logger.log_err(f"evennia_ai: that NPC {npc.id} guards '{info.key}' is not kept: {error}")


def held_keys(npc: NPC, bases: Iterable[BaseInfo]) -> frozenset[str]:
    """The keys of those bases that the NPC must guard."""
    return frozenset(info.key for info in bases if is_held(npc, info))


def told_before(npc: NPC, bases: Iterable[BaseInfo]) -> tuple[BaseInfo, ...]:
    """The bases as the NPC may be told of them: what it guards with a hint that gives nothing away.

    Warm, without a query.
    """
    return tuple(
        replace(info, hint=safe_hint_of(info.key)) if is_held(npc, info) else info for info in bases
    )


def _scopes(npc: NPC, conversation: ConversationRef | None) -> tuple[Scope, ...]:
    if conversation is None:
        return scopes_of(npc)
    return (*scopes_of(npc), Scope(kind="conversation", ref=str(conversation.id)))


def _allows(npc: NPC, locks: str, access: str, *, where_it_fails: bool) -> bool:
    if not locks:
        return True
    try:
        return bool(
            check_lockstring(npc, locks, no_superuser_bypass=True, default=True, access_type=access)
        )
    except Exception as error:  # lock functions are the game's own code
        problem = f"the lock {locks!r} cannot be asked for NPC {npc.id}"
        logger.log_err(f"evennia_ai: {problem}: {type(error).__name__}")
        return where_it_fails
