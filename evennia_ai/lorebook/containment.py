"""Containment: what of an entry's place and role its book has no grant for, and where it then goes.

An entry by depth keeps its depth, which the history clamps. One that asks for a place outside the
history stands at its top.
"""

from dataclasses import replace
from functools import lru_cache

from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.places import ActiveEntry
from evennia_ai.prompt.components import MAX_DEPTH
from evennia_ai.prompt.grants import ALL_GRANTS, Grant, Grants


def contained(entry: ActiveEntry, grants: Grants) -> ActiveEntry:
    """The entry where its book's grants let it stand: the same one where they let it be."""
    if grants == ALL_GRANTS:
        return entry
    if "positions" not in grants and entry.position != "depth":
        entry = replace(
            entry, position="depth", depth=MAX_DEPTH, from_oldest=False, outlet="", anchor=None
        )
    return entry if "roles" in grants else replace(entry, role="user")


def missing(entry: LoreEntry, grants: Grants) -> tuple[Grant, ...]:
    """The grants an entry would need for its place and its role, and that are not given."""
    wanted: list[Grant] = []
    if entry.position != "depth":
        wanted.append("positions")
    if entry.role != "user":
        wanted.append("roles")
    return tuple(grant for grant in wanted if grant not in grants)


@lru_cache(maxsize=8)
def told(missing: tuple[Grant, ...]) -> str:
    """The containment in words, for a verdict."""
    moved = {"positions": "at the top of the history", "roles": "as a user's"}
    stands = " ".join(moved[grant] for grant in missing)
    return f"stands {stands}: its card has no grant for {' and '.join(missing)}"
