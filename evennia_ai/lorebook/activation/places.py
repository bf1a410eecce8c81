"""Where active entries stand: the places of the prompt, and containment.

Where a book has no grant for an entry's place or role, the entry is contained. One by depth, or
beside a message, keeps its place, which the history clamps. One that asks for a place outside the
history stands at its top. So does one that asks for a place inside another text, the author's note
or a component that names an outlet, where it may not speak in the role of that text.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from evennia_ai.lorebook.entry import IN_HISTORY, Anchor, LoreEntry, Position
from evennia_ai.prompt.components import Grant, Grants
from evennia_ai.prompt.memo import Memo
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.pieces import Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveEntry:
    """An entry that goes into the prompt."""

    origin: str
    label: str
    """`book#uid`."""
    book: str
    uid: str
    name: str
    text: str
    """Its decorators cut, its macros expanded."""
    tokens: int
    position: Position
    depth: int | None
    """As in `LoreEntry`; of one at a mention that of its message."""
    from_oldest: bool
    outlet: str
    anchor: Anchor | None
    role: Role
    order: float
    """The entry's own."""
    stands: tuple[float, str]
    """Sorts it among the texts of one place: order, then key."""
    priority: float
    constant: bool
    revision: int
    cause: str
    identity: str = ""
    """What it is remembered by."""
    frozen: bool = False
    """Whether its book is."""
    keeps_role: bool = False
    """It never joins a message of another role."""
    beside: Beside | None = None
    """Which message that is, of one at a mention."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


CONTAINED_PRIORITY: Final = 50
"""Below the 100 of a game's own texts, which text that nobody vouches for does not crowd out."""

# Places inside another text, whose role all of it has.
_INSIDE: Final[tuple[Position, ...]] = ("note_top", "note_bottom", "outlet")


def is_moved(position: Position, grants: Grants) -> bool:
    """Whether an entry that asks for this position stands at the top of the history instead."""
    if position in IN_HISTORY:
        return False
    return "positions" not in grants or (position in _INSIDE and "roles" not in grants)


def missing(entry: LoreEntry, grants: Grants) -> tuple[Grant, ...]:
    """The grants an entry would need for its place and its role, and that are not given."""
    wanted: list[Grant] = []
    if entry.position not in IN_HISTORY:
        wanted.append("positions")
    if entry.role != "user" or entry.position in _INSIDE:
        wanted.append("roles")
    return tuple(grant for grant in wanted if grant not in grants)


@lru_cache(maxsize=16)
def containment_in_words(missing: tuple[Grant, ...], position: Position) -> str:
    """The containment in words, for a verdict."""
    stands = []
    if "positions" in missing or position in _INSIDE:
        stands.append("at the top of the history")
    if "roles" in missing:
        stands.append("as a user's")
    return f"stands {' '.join(stands)}: its card has no grant for {' and '.join(missing)}"
