"""Work: what the macros and the logic of texts may do in one turn, counted and never measured.

A unit is about a tenth of a microsecond on a usual machine. Everything pays before it is done:
each macro, each step of logic, and each text that is made, by its length. So a turn gives the same
prompt on every machine, and the same whether its texts were remembered from an earlier turn or not.

All texts of a turn share one limit, whoever wrote them and whatever they were granted. Parts of it
are set aside, so that a text that nobody vouches for cannot use up what the game's own texts need.
"""

from typing import Final

from evennia_ai.engine.errors import TemplateError

MAX_WORK: Final = 45_000
"""Units of work for all texts of one turn: about 5 ms of the game's thread."""
FIELDS_WORK: Final = MAX_WORK // 20
"""Of these, for filling in the card's fields as values of other texts: four times, once for each
way in which a text may see them (`Fields`)."""
SCANNED_WORK: Final = MAX_WORK // 20
"""Of these, for the card's texts that lore searches."""
KEYS_WORK: Final = MAX_WORK // 20
"""Of these, for the macros in the keys of a book."""
PLACED_WORK: Final = MAX_WORK - 4 * FIELDS_WORK - SCANNED_WORK - KEYS_WORK
"""What is left for the texts that stand in the prompt."""
LORE_WORK: Final = MAX_WORK // 4
"""At most so much of it is for entries of lore."""
CONTAINED_WORK: Final = MAX_WORK // 4
"""At most so much of it is for texts that nobody vouches for."""
TEXT_WORK: Final = 10
"""What it takes to begin with a text that has macros."""
LOGIC_WORK: Final = 100
"""The same for one that has logic."""
NODE_WORK: Final = 3
"""The same for each node of the syntax tree of logic."""
PLACED_MACRO_WORK: Final = 60
"""The same for each macro between logic, beside what the macro itself takes."""
PASSED_A_UNIT: Final = 7
"""Characters that a filter or a comparison goes through for one unit."""
MAX_FILLED: Final = 200_000
"""Characters that a text may have when its names are filled in."""
COPIED_A_UNIT: Final = 500
"""Characters that are put together for one unit."""
COUNTED_A_UNIT: Final = 16
"""Characters whose tokens are counted for one unit."""


class OutOfWorkError(TemplateError):
    """A text needs more work than is left of the turn."""

    def __init__(self, *, line: int | None = None) -> None:
        super().__init__(
            "its macros and logic need more work than is left for the texts of this turn;"
            " use fewer of them, here or in the texts before it",
            line=line,
        )


class Meter:
    """The work that may still be done; whoever does some pays first."""

    __slots__ = ("left", "limit", "ran_out")

    def __init__(self, limit: int = PLACED_WORK) -> None:
        self.limit = limit
        self.left = limit
        self.ran_out = False
        """Whether something was too much for it."""

    @property
    def spent(self) -> int:
        """What was paid."""
        return self.limit - self.left

    def pay(self, work: int) -> None:
        """Pay for work. What is too much is refused, and costs nothing.

        Raises:
            OutOfWorkError: less than that is left.
        """
        if work > self.left:
            self.ran_out = True
            raise OutOfWorkError
        self.left -= work

    def pay_whole(self, work: int, *, at_least: int) -> None:
        """Pay for a text whose work is known, as if it were filled in again.

        One whose macros alone (`at_least`) are too much is refused at once. Any other would have
        used up what is left before it was stopped.
        """
        if work > self.left >= at_least:
            self.left = 0
        self.pay(work)
