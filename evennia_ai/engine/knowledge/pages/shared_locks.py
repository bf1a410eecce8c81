"""Locks of what games share: those that mean the same in every game, and no others.

A permission is one in every game; a tag, an attribute or the id of an object is somebody else's in
the next. So a lock is shared where all it asks for are permissions, and refused where it asks for
anything else: read in another game it would let in whom nobody meant. Who is told safe summaries
alone (`restricted`) and who may change a base (`edit`) is each game's own, whatever it asks.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page

SHARED: Final = ("view", "search")
"""Access types whose locks are shared."""

_ASKED: Final = r"(?:(?:perm|perm_above)\(\w{1,64}\)|(?:all|false)\(\))"
_SAME_EVERYWHERE: Final = re.compile(rf"{_ASKED}(?: (?:and|or) {_ASKED}){{0,20}}", re.ASCII | re.I)


def parts_of(locks: str) -> Mapping[str, str]:
    """What a lock string says of each access type, in its order."""
    parts = (part.partition(":") for part in locks.split(";") if part.strip())
    return {kind.strip(): " ".join(asked.split()) for kind, _, asked in parts}


def joined(parts: Mapping[str, str]) -> str:
    """The lock string that says so."""
    return ";".join(f"{kind}:{asked}" for kind, asked in parts.items())


def is_shared(locks: str) -> bool:
    """Whether a lock string has nothing but what is shared."""
    parts = parts_of(locks)
    return all(
        kind in SHARED and _SAME_EVERYWHERE.fullmatch(asked) for kind, asked in parts.items()
    )


def page_to_share(page: Page) -> Page | None:
    """The page as other games get it, None where its lock keeps it at home."""
    shared = _shared_parts(page.locks)
    return replace(page, locks=shared) if is_shared(shared) else None


def base_to_share(info: BaseInfo) -> BaseInfo | None:
    """What other games are told of a base, None where its lock keeps it at home."""
    shared = _shared_parts(info.locks)
    return replace(info, locks=shared) if is_shared(shared) else None


def _shared_parts(locks: str) -> str:
    parts = parts_of(locks)
    return joined({kind: asked for kind, asked in parts.items() if kind in SHARED})
