"""Locks of shared bases and pages: only locks that mean the same in every game are shared.

A permission exists in every game. A tag, an attribute or the id of an object means something else
in the next game. So a lock is shared only if all its functions check permissions. Any other lock
could admit the wrong people in another game, so it is refused. Each game decides for itself who
gets only safe summaries (`restricted`) and who may change a base (`edit`).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page

SHARED_ACCESS: Final = ("view", "search")
"""Access types whose locks are shared."""

_ASKED: Final = r"(?:(?:perm|perm_above)\(\w{1,64}\)|(?:all|false)\(\))"
_SAME_EVERYWHERE: Final = re.compile(rf"{_ASKED}(?: (?:and|or) {_ASKED}){{0,20}}", re.ASCII | re.I)


def split_locks(locks: str) -> Mapping[str, str]:
    """Return the lock functions of each access type in a lock string, in order."""
    parts = (part.partition(":") for part in locks.split(";") if part.strip())
    return {kind.strip(): " ".join(asked.split()) for kind, _, asked in parts}


def join_locks(parts: Mapping[str, str]) -> str:
    """Return the lock string of these access types."""
    return ";".join(f"{kind}:{asked}" for kind, asked in parts.items())


def is_shareable(locks: str) -> bool:
    """True if a lock string means the same in every game."""
    parts = split_locks(locks)
    return all(
        kind in SHARED_ACCESS and _SAME_EVERYWHERE.fullmatch(asked) for kind, asked in parts.items()
    )


def shareable_page(page: Page) -> Page | None:
    """Return the page for other games, or None if its lock forbids sharing."""
    shared = _shared_parts(page.locks)
    return replace(page, locks=shared) if is_shareable(shared) else None


def shareable_base(info: BaseInfo) -> BaseInfo | None:
    """Return the base for other games, or None if its lock forbids sharing."""
    shared = _shared_parts(info.locks)
    return replace(info, locks=shared) if is_shareable(shared) else None


def _shared_parts(locks: str) -> str:
    parts = split_locks(locks)
    return join_locks({kind: asked for kind, asked in parts.items() if kind in SHARED_ACCESS})
