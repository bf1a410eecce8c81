"""Where active entries stand: the places of the prompt and the order inside each of them."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from evennia_ai.lorebook.entries import Anchor, Position
from evennia_ai.prompt.memo import Memo
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.pieces import Beside


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveEntry:
    """An entry that goes into the prompt.

    `label` is `book#uid`, `text` has its decorators cut and its macros expanded. `order` is the
    entry's own; `stands` sorts it among the texts of one place: order, then key. `outlet` and
    `anchor` are as in `LoreEntry`. `identity` is what the entry is remembered by, `frozen` says
    that its book is. One that `keeps_role` never joins a message of another role. Where the entry
    stands at a mention, `depth` is that of its message and `beside` tells which message that is.
    `memo` keeps what was worked out from it.
    """

    origin: str
    label: str
    book: str
    uid: str
    name: str
    text: str
    tokens: int
    position: Position
    depth: int | None
    from_oldest: bool
    outlet: str
    anchor: Anchor | None
    role: Role
    order: float
    stands: tuple[float, str]
    priority: float
    constant: bool
    revision: int
    cause: str
    identity: str = ""
    frozen: bool = False
    keeps_role: bool = False
    beside: Beside | None = None
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


def in_output_order(entries: Iterable[ActiveEntry]) -> list[ActiveEntry]:
    """The entries as they come out inside one place, top to bottom."""
    return sorted(entries, key=lambda entry: entry.stands)


def outlets_of(entries: Iterable[ActiveEntry]) -> dict[str, list[ActiveEntry]]:
    """The entries of each outlet, in the order they come out."""
    outlets: dict[str, list[ActiveEntry]] = {}
    for entry in in_output_order(entries):
        if entry.position == "outlet":
            outlets.setdefault(entry.outlet, []).append(entry)
    return outlets
