"""One entry of a book, as a value the activation works on.

An entry says where it stands, what wakes it and what its text is, with its decorators already
applied. What an entry needs and this room does not do stands in `refused`; such an entry is never
active and its verdict says why.
"""

from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.lorebook.decorators import Decorator
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.template import Template

Position = Literal["before", "after", "depth"]
# How secondary keys decide, beside a key that was found (SillyTavern's numbers 0 to 3).
Logic = Literal["any", "not_all", "not_any", "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """Conditions of an entry beside its keys (Card V3 decorators); None is no condition.

    `additional` must each have one key in the scanned text, `excluded` none at all.
    """

    forced: bool = False
    forbidden: bool = False
    greeting: int | None = None
    replies_from: int | None = None
    every_replies: int | None = None
    additional: tuple[tuple[str, ...], ...] = ()
    excluded: tuple[str, ...] = ()


NO_GATES: Final = Gates()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoreEntry:
    """One entry of a book.

    `index` is its position in the book, `origin` its name in verdicts. `depth` counts from the
    newest message, or from the oldest where `from_oldest`, and is None unless the position is
    "depth". `order` is the place among its neighbours, low first; `priority` the survival under
    the budget, high survives, and `first_to_go` comes before any priority. None for a flag or a
    depth means that the book or the rules decide.
    """

    uid: str
    index: int
    origin: str
    name: str = ""
    keys: tuple[str, ...] = ()
    secondary_keys: tuple[str, ...] = ()
    logic: Logic = "any"
    enabled: bool = True
    constant: bool = False
    template: Template
    position: Position = "after"
    depth: int | None = None
    from_oldest: bool = False
    role: Role = "system"
    order: float = 100
    priority: float = 100
    first_to_go: bool = False
    case_sensitive: bool | None = None
    match_whole_words: bool | None = None
    scan_depth: int | None = None
    gates: Gates = NO_GATES
    decorators: tuple[Decorator, ...] = ()
    refused: str | None = None
