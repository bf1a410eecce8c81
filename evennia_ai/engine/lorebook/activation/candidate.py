"""The values between the steps of lore activation.

An entry gets a `Judgement` (are its conditions met?). If they are, it becomes a `Candidate` and
gets a `Ruling` (does it become active?). The result is an `ActiveEntry`.
"""

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
    """An active lorebook entry: its text, its place in the prompt, and what to report about it."""

    origin: str
    label: str
    """The name of the entry in verdicts, written `book#uid`."""
    book: str
    uid: str
    name: str
    text: str
    """The content of the entry without decorators and with expanded macros."""
    tokens: int
    position: Position
    depth: int | None
    """The depth of the entry, as in `LoreEntry`. With the position "at_mention", it is the depth of
    the message that the entry is next to."""
    from_oldest: bool
    outlet: str
    anchor: Anchor | None
    role: Role
    order: float
    """The order that the author gave the entry."""
    sort_key: tuple[float, str]
    """Sorts the entry among texts at the same place of the prompt: an order, then a text."""
    priority: float
    constant: bool
    revision: int
    depends_on_speech: Dependence | None = None
    """The reason why the text depends on what is said in the chat; None if it does not."""
    identity: str = ""
    """The name of the entry in the stored timers, the same in all turns."""
    frozen: bool = False
    """True if the book is "frozen": its active entries stay in the prompt where they are."""
    keeps_role: bool = False
    """True if the entry must not be merged into a message of another role."""
    beside: Beside | None = None
    """The message that the entry is next to, with the position "at_mention"."""
    memo: Memo = field(default_factory=Memo, init=False, repr=False, compare=False)


@dataclass(slots=True)
class Judgement:
    """The decision whether an entry meets its conditions and has a found key, with the reason.

    `found` is the key that activates the entry, or None if something else does or nothing does.
    """

    is_candidate: bool
    reason: EntryReason
    found: FoundKey | None = None
    sticky: bool = False
    _cause: str = field(default="", compare=False)

    @property
    def cause(self) -> str:
        """The reason of the decision as text. It is rendered on the first use."""
        if not self._cause:
            self._cause = str(self.reason)
        return self._cause


# By the text of a key: the last judgement (decision and reason) because of this key. All entries
# with the key share it.
JUDGED: Final = Slot[dict[str, Judgement]]("judged")


# The tokens left in the lore budget before and after an entry was admitted. One new entry changes
# these numbers for all later entries. So this is a plain tuple, which is fast to create.
Charge = tuple[int, int]


@dataclass(slots=True, eq=False)
class Ruling:
    """The decision whether an entry that met its conditions becomes active.

    `details` are further reasons for the verdict, about the entry and the turn but never about
    messages. `charge` has the tokens left in the lore budget before and after the entry was
    admitted. It is None for an entry without a charge.
    """

    kept: bool
    details: tuple[object, ...] = ()
    tokens: int = 0
    charge: Charge | None = None

    def render(self, cause: str) -> str:
        """Join `cause`, the details and the charge with semicolons, as the reason of a verdict."""
        words = "; ".join([cause, *map(str, self.details)]) if self.details else cause
        if self.charge is None:
            return words
        before, after = self.charge
        return f"{words}; budget {before} -> {after} tokens"


NO_CANDIDATE: Final = Ruling(False)


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An entry whose conditions are met, with its expanded text.

    A candidate becomes active unless a group, chance or the budget refuses it. Later turns reuse
    the candidate while its text is unchanged, if nothing else in it can change.
    """

    number: int
    """The number of the entry, unique among the entries of all books of the turn."""
    place: tuple[float, ...]
    """The sort key by which the candidates of one activation pass are processed."""
    tier: int
    yields: float
    """The rank inside the budget tier. Candidates with low numbers get tokens first."""
    rank: int
    """The position of the candidate's book in reading order."""
    book: Lorebook
    entry: LoreEntry
    label: str
    """The name of the entry in verdicts, `book#uid`."""
    identity: str
    """The name of the entry in the stored timers, the same in all turns."""
    sticky: bool
    """True if the entry stays active because an earlier turn activated it."""
    rests: bool
    """True if the cooldown of the entry is running."""
    text: str
    searched: str
    """The text that recursion searches for keys: the entry's own text and its hidden keys."""
    tokens: int
    work: int
    """The work units that expanding the macros of the text costs, 0 without macros."""
    counter: TokenCounter
    lacking: tuple[Grant, ...]
    """The grants that the entry needs for its place and role, but that its book lacks."""
    is_lasting: bool
    """True if later turns may reuse the candidate: only its text can change."""
    is_constant_text: bool
    """True if the text has no macros that read values or roll dice."""
    is_steady: bool
    """True if neither a chance nor an inclusion group decides about the entry."""
    is_remembered: bool
    """True if later turns must know that the entry was active."""
    active: ActiveEntry | None = None
    """The entry as the last prompt placed it; None before the first prompt."""

    def is_for(self, book: Lorebook, *, rank: int, counter: TokenCounter, sticky: bool) -> bool:
        """True if a new candidate for this entry would equal this one, except for its text."""
        return (
            self.is_lasting
            and self.book is book
            and self.rank == rank
            and self.counter is counter
            and self.sticky == sticky
        )


PLACE: Final = attrgetter("place")
# The last candidate made for each entry, by index of the entry.
CANDIDATES: Final = Slot[dict[int, Candidate]]("candidates")
