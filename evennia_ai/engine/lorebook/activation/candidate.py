"""The values of a run: judgements and rulings on entries, candidates, and active entries."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from evennia_ai.engine.lorebook.activation.reasons import EntryReason
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import Anchor, LoreEntry, Position
from evennia_ai.engine.lorebook.scan.hit_cache import FoundKey
from evennia_ai.engine.prompt.components import Grant
from evennia_ai.engine.prompt.fragments import Beside
from evennia_ai.engine.prompt.memo import Memo, Slot, typed_frozen_row
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.prefix_rules import Dependence
from evennia_ai.engine.prompt.tokens import TokenCounter


@typed_frozen_row
class ActiveEntry:
    """An active entry as the prompt needs it; the same object while nothing about it changes."""

    origin: str
    label: str
    """`book#uid`."""
    book: str
    uid: str
    name: str
    text: str
    """Its content without decorators, with its macros filled in."""
    tokens: int
    position: Position
    depth: int | None
    """As in `LoreEntry`. At a mention it is the depth of that message."""
    from_oldest: bool
    outlet: str
    anchor: Anchor | None
    role: Role
    order: float
    """The order that its author gave it."""
    stands: tuple[float, str]
    """Its sort key among the texts of one place: order, then a text."""
    priority: float
    constant: bool
    revision: int
    unsettled: Dependence | None = None
    """Why its text depends on what is said, if it does."""
    identity: str = ""
    """Its name in timers, in other turns, too."""
    frozen: bool = False
    """True if its book is frozen."""
    keeps_role: bool = False
    """True if it never joins a message of another role."""
    beside: Beside | None = None
    """The message that it is next to, at a mention."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


@dataclass(slots=True)
class Judgement:
    """The decision if an entry is a candidate, with its reason.

    `found` is the key that activates it.
    """

    is_candidate: bool
    reason: EntryReason
    found: FoundKey | None = None
    sticky: bool = False
    _cause: str = field(default="", compare=False)

    @property
    def cause(self) -> str:
        """The reason in words, rendered once."""
        if not self._cause:
            self._cause = str(self.reason)
        return self._cause


# By the text of a key, the last judgement on the entries that it activates.
JUDGED: Final = Slot[dict[str, Judgement]]("judged")


# The tokens left in the budget before and after an entry was admitted. A plain tuple, fast to make,
# because a new entry changes the charges of all entries after it.
Charge = tuple[int, int]


@dataclass(slots=True, eq=False)
class Ruling:
    """The decision on a judged entry.

    `details` are reasons next to its cause, about the entry and the run, never about messages.
    `charge` is its cost in the budget if it was admitted. An entry that was no candidate has
    neither.
    """

    kept: bool
    details: tuple[object, ...] = ()
    tokens: int = 0
    charge: Charge | None = None

    def render(self, cause: str) -> str:
        """Render the cause of an entry, the details and the charge, separated by semicolons."""
        words = "; ".join([cause, *map(str, self.details)]) if self.details else cause
        if self.charge is None:
            return words
        before, after = self.charge
        return f"{words}; budget {before} -> {after} tokens"


NO_CANDIDATE: Final = Ruling(False)


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An entry that its conditions and keys let through, with its text.

    It is the same object in later turns while only its text could change and does not. The cause
    is in its judgement.
    """

    number: int
    """Its number among the entries of all books."""
    place: tuple[float, ...]
    """Its sort key in the processing order."""
    tier: int
    yields: float
    """The budget is offered to the lowest tier first, and in it to the lowest `yields`."""
    rank: int
    """The place of its book among the books."""
    book: Lorebook
    entry: LoreEntry
    label: str
    """`book#uid`."""
    identity: str
    """Its name in timers, in other turns, too."""
    sticky: bool
    """True if it stays active because of an earlier turn."""
    rests: bool
    """True if its cooldown runs."""
    text: str
    searched: str
    """The text that recursion searches: its own, and its hidden keys."""
    tokens: int
    work: int
    """The work of filling in its macros, 0 without any."""
    counter: TokenCounter
    lacking: tuple[Grant, ...]
    """The grants that its book lacks for its place and role."""
    is_lasting: bool
    """True if only its text can change from turn to turn."""
    is_constant_text: bool
    """True if its text has no macros that read values or roll."""
    is_steady: bool
    """True if neither chance nor a group decides about it."""
    is_remembered: bool
    """True if it matters to later turns that it was active."""
    active: ActiveEntry | None = None
    """The entry with its place in the last prompt."""

    def is_for(self, book: Lorebook, *, rank: int, counter: TokenCounter, sticky: bool) -> bool:
        """True if a new candidate for the same entry could differ only in its text."""
        return (
            self.is_lasting
            and self.book is book
            and self.rank == rank
            and self.counter is counter
            and self.sticky == sticky
        )


PLACE: Final = attrgetter("place")
# By the index of an entry, its last candidate.
CANDIDATES: Final = Slot[dict[int, Candidate]]("candidates")
