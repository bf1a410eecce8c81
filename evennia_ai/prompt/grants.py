"""Grants: what text that came from outside may do beyond standing in the history as a user's.

Without a grant such text stays inside the history, clamped to it, in the role user, and what has no
depth of its own stands at the top. A builder gives each grant by name; nothing gives one by itself.
"""

from typing import Final, Literal, get_args

Grant = Literal[
    "fields", "system_prompt", "after_history", "positions", "roles", "lore_budget", "regex"
]
Grants = frozenset[Grant]

NO_GRANTS: Final[Grants] = frozenset()
ALL_GRANTS: Final[Grants] = frozenset(get_args(Grant))

# What each one allows, in the order in which they are told.
ALLOWS: Final[dict[Grant, str]] = {
    "fields": (
        "its description, personality, scenario and examples stand before the history, and the NPC"
        " has its name"
    ),
    "system_prompt": "its system prompt stands after the game's own rules",
    "after_history": "its instructions for after the history stand there",
    "positions": "its lore stands where it asks to, outside the history too",
    "roles": "its lore and its note by depth speak as system or assistant",
    "lore_budget": "its lore has the budget it asks for, entries outside it included",
    "regex": "its regex keys run under a time limit, as they do without it",
}


def in_order(grants: Grants) -> tuple[Grant, ...]:
    """The grants in the order in which they are told."""
    return tuple(grant for grant in ALLOWS if grant in grants)
