"""Bases that come from the library: what of them is the library's, and what this game's own.

Texts are the library's. Who may read a base is the library's as far as the library says so, and the
game's beyond that: a copy is never less guarded than what was published, and a lock that the
library lifts stays until the game lifts it, as after the import of a folder.
"""

from dataclasses import replace
from typing import Final

from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.knowledge.pages.shared_locks import join_locks, split_locks
from evennia_ai.store.core.copies import Copy, CopyError

TEXTS: Final = ("name", "summary", "topics", "hint", "keywords", "direct_characters", "backend")
GUARDS: Final = ("restricted", "keeps_chunks", "mediation")
"""Fields that guard a base where they are not as in one that nothing is told of."""


def said_of(info: BaseInfo) -> frozenset[str]:
    """What is said of who may read a base, in words: fields, and access types of its lock."""
    unsaid = BaseInfo(key="", name="")
    fields = (one for one in GUARDS if getattr(info, one) != getattr(unsaid, one))
    return frozenset([*fields, *split_locks(info.locks)])


def as_published(published: BaseInfo, here: BaseInfo | None) -> BaseInfo:
    """The base as it is here once what was published is taken; `here` is what it was."""
    now = here or BaseInfo(key=published.key, name=published.key)
    said = said_of(published)
    taken = {one: getattr(published, one) for one in TEXTS if one != "backend"}
    taken |= {one: getattr(published, one) for one in GUARDS if one in said}
    locks = {**split_locks(now.locks), **split_locks(published.locks)}
    return replace(now, **taken, locks=join_locks(locks))


def refuse_edit(copy: Copy, now: BaseInfo, wanted: BaseInfo) -> None:
    """CopyError where `wanted` differs from `now` in what is the library's."""
    fields = (*TEXTS, *(one for one in GUARDS if one in copy.said))
    before, after = split_locks(now.locks), split_locks(wanted.locks)
    changed = [one for one in fields if getattr(now, one) != getattr(wanted, one)]
    changed += [
        f"lock {kind}"
        for kind in sorted(copy.said.difference(GUARDS))
        if before.get(kind) != after.get(kind)
    ]
    if changed:
        raise CopyError(copy, f"{changed[0]} of knowledge base '{copy.name}'")
