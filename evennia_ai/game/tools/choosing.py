"""Choosing: which tools an NPC has, which it could have, which there are no more.

An NPC has none until a builder gives it some.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evennia_ai.game.npc_settings import changed, settings_of
from evennia_ai.game.tools.registry import registry
from evennia_ai.game.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The tools of an NPC (`has`), the others of the game, and names that are no tool any more."""

    has: tuple[Tool, ...]
    others: tuple[Tool, ...]
    gone: tuple[str, ...]


def choice_of(npc: Any) -> Choice:
    """What was chosen for an NPC, each in the order of names."""
    known = registry().tools
    chosen = settings_of(npc).tools
    return Choice(
        has=tuple(known[name].tool for name in sorted(known) if name in chosen),
        others=tuple(known[name].tool for name in sorted(known) if name not in chosen),
        gone=tuple(sorted(set(chosen) - set(known))),
    )


def chosen(npc: Any, names: Iterable[str], *, by: str) -> Choice:
    """Give an NPC these tools and no others; SettingError, and nothing changed, where it cannot."""
    wanted = tuple(sorted(set(names)))
    changed(npc, by=by, tools=wanted or None)
    return choice_of(npc)


def problems_of(npc: Any) -> tuple[str, ...]:
    """What is wrong with the tools of an NPC, for its builder."""
    return tuple(
        f"the tool '{name}' that it had is none of the game's any more;"
        f" ai/tools {npc.key} = -{name} takes it away"
        for name in choice_of(npc).gone
    )
