"""A candidate: an entry that its conditions let through in one pass, before groups and budget."""

from dataclasses import dataclass
from typing import Final

from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.judging import Judgement
from evennia_ai.lorebook.places import ActiveEntry
from evennia_ai.lorebook.scanning import FED
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.prompt.trace import Verdict


@dataclass(slots=True, eq=False, kw_only=True)
class Candidate:
    """An entry that its conditions let through, why, and its text; as text it reads as its cause.

    It is remembered by its `identity`, and called by its `label`.

    `rank` is the place of its book among the books, `place` its own in the processing order, and
    `survival` sorts by who is offered room first. It is `sticky` where it stays from before, and
    `rests` where its cooldown runs. `speaker` is who woke it, None where it was nobody in
    particular. Where nothing but its judgement and its text can change (`is_lasting`), it is the
    same object turn after turn, with its cause, its place in the prompt and its last verdict.
    """

    place: tuple[float, ...]
    survival: tuple[object, ...]
    rank: int
    book: Lorebook
    entry: LoreEntry
    label: str
    identity: str
    judgement: Judgement
    rests: bool
    text: str
    is_constant_text: bool
    tokens: int
    counter: TokenCounter
    speaker: str | None
    is_lasting: bool
    cause: str = ""
    active: ActiveEntry | None = None
    told: tuple[object, Verdict] | None = None

    def __str__(self) -> str:
        if not self.cause:
            self.cause = str(self.judgement.reason)
        return self.cause

    def is_of(self, judgement: Judgement, rank: int, counter: TokenCounter) -> bool:
        """Whether it is what would be made anew, its text aside."""
        same = self.judgement is judgement and self.counter is counter
        return same and self.is_lasting and self.rank == rank

    @property
    def is_fed(self) -> bool:
        """Whether the text of another entry woke it."""
        found = self.judgement.found
        return found is not None and found.place == FED

    @property
    def searched(self) -> str:
        """What of it is searched in recursion: its text, and the keys it hides there."""
        hidden = self.entry.template.hidden_keys
        return "\n".join((self.text, *hidden)) if hidden else self.text

    @property
    def sticky(self) -> bool:
        """Whether it stays from before."""
        return self.judgement.sticky

    @property
    def ref(self) -> tuple[int, int]:
        """The rank of its book and its index in it."""
        return self.rank, self.entry.index


# By the index of an entry the candidate it last was.
CANDIDATES: Final = Slot[dict[int, Candidate]]("candidates")
