"""Guarding: which knowledge bases an NPC may search, and which of them it must guard.

A lock is asked as the NPC itself, with its own permissions; nobody passes it by being a superuser.
One that cannot be asked lets the NPC into nothing, and holds it to everything.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from evennia.locks.lockhandler import check_lockstring
from evennia.utils import logger

from evennia_ai.game.view import scopes_of
from evennia_ai.knowledge.pages import BaseInfo
from evennia_ai.prompt.components import Scope
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.knowledge_bindings import bound
from evennia_ai.store.safe_hints import safe_hint_of

SEARCH: Final = "search"
RESTRICTED: Final = "restricted"


def searchable(npc: Any, conversation: ConversationRef | None) -> tuple[BaseInfo, ...]:
    """The bases that are bound to the NPC, its place or the conversation and let it search them.

    By their keys; warm, without a query.
    """
    return tuple(info for info in bound(_scopes(npc, conversation)) if may_search(npc, info.locks))


def may_search(npc: Any, locks: str) -> bool:
    """Whether the lock string of a base or a page lets the NPC find it."""
    return _allows(npc, locks, SEARCH, where_it_fails=False)


def is_held(npc: Any, info: BaseInfo) -> bool:
    """Whether the NPC gets nothing but safe summaries of a base."""
    return info.restricted and _allows(npc, info.locks, RESTRICTED, where_it_fails=True)


def held_keys(npc: Any, bases: Iterable[BaseInfo]) -> frozenset[str]:
    """The keys of those bases that the NPC must guard."""
    return frozenset(info.key for info in bases if is_held(npc, info))


def told_before(npc: Any, bases: Iterable[BaseInfo]) -> tuple[BaseInfo, ...]:
    """The bases as the NPC may be told of them: what it guards with a hint that gives nothing away.

    Warm, without a query.
    """
    return tuple(
        replace(info, hint=safe_hint_of(info.key)) if is_held(npc, info) else info for info in bases
    )


def _scopes(npc: Any, conversation: ConversationRef | None) -> tuple[Scope, ...]:
    if conversation is None:
        return scopes_of(npc)
    return (*scopes_of(npc), Scope(kind="conversation", ref=str(conversation.id)))


def _allows(npc: Any, locks: str, access: str, *, where_it_fails: bool) -> bool:
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
