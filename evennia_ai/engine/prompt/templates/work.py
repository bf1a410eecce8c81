"""Work: a limit for the macros and the logic of one turn, in steps and never in time.

A unit is about a tenth of a microsecond on a usual machine. Every operation pays before it runs:
each macro, each step of logic, and each text by its length. So a turn gives the same prompt on
every machine, and the same if its texts were remembered from an earlier turn.

All texts of a turn share one limit, regardless of author and grants. Parts of it are reserved, so
that contained text cannot use up the work that the game's own texts need.
"""

from typing import Final

from evennia_ai.engine.errors import TemplateError

MAX_WORK: Final = 45_000
"""Units of work for all texts of one turn: about 5 ms of the game's thread."""
FIELDS_WORK: Final = MAX_WORK // 20
"""The part for rendering the card's fields as values of other texts.

It is needed four times, once for each way in which a text may see them (`Fields`)."""
SCANNED_WORK: Final = MAX_WORK // 20
"""The part for the card's texts in which lore looks for keys."""
KEYS_WORK: Final = MAX_WORK // 20
"""The part for macros in the keys of a book."""
PLACED_WORK: Final = MAX_WORK - 4 * FIELDS_WORK - SCANNED_WORK - KEYS_WORK
"""The rest, for the texts of the prompt."""
LORE_WORK: Final = MAX_WORK // 4
"""The most that entries of lore may use of it."""
CONTAINED_WORK: Final = MAX_WORK // 4
"""The most that contained texts may use of it."""
TEXT_WORK: Final = 10
"""The price of starting a text with macros."""
LOGIC_WORK: Final = 100
"""The price of starting a text with logic."""
NODE_WORK: Final = 3
"""The price of each node in the syntax tree of logic."""
PLACED_MACRO_WORK: Final = 60
"""The price of each macro inside logic, on top of the macro's own."""
PASSED_A_UNIT: Final = 7
"""Characters that a filter or a comparison reads for one unit."""
MAX_FILLED: Final = 200_000
"""The longest text after filling in names, in characters."""
COPIED_A_UNIT: Final = 500
"""Characters that are put together for one unit."""
COUNTED_A_UNIT: Final = 16
"""Characters whose tokens are counted for one unit."""


class OutOfWorkError(TemplateError):
    """A text that needs more work than is left of the turn."""

    def __init__(self, *, line: int | None = None) -> None:
        super().__init__(
            "its macros and logic need more work than is left for the texts of this turn;"
            " use fewer of them, here or in the texts before it",
            line=line,
        )


class Meter:
    """The work that is left. Every operation pays before it runs."""

    __slots__ = ("left", "limit", "ran_out")

    def __init__(self, limit: int = PLACED_WORK) -> None:
        self.limit = limit
        self.left = limit
        self.ran_out = False
        """True if some operation was too expensive."""

    @property
    def spent(self) -> int:
        """The work that was paid."""
        return self.limit - self.left

    def pay(self, work: int) -> None:
        """Pay for work. An operation that is too expensive is refused and costs nothing.

        Raises:
            OutOfWorkError: less than that is left.
        """
        if work > self.left:
            self.ran_out = True
            raise OutOfWorkError
        self.left -= work

    def pay_whole(self, work: int, *, at_least: int) -> None:
        """Pay for a text whose work is known, as if it were rendered again.

        A text whose macros alone (`at_least`) are too expensive is refused at once. Any other would
        have used up the rest before it was stopped, so nothing is left.
        """
        if work > self.left >= at_least:
            self.left = 0
        self.pay(work)
