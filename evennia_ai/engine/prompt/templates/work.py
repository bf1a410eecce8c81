"""Work: the limit for expanding the texts of one turn, counted in units and never in time.

A unit is about a tenth of a microsecond on a usual machine. Each operation is charged before it
runs: each macro, each step of logic, and each text by its length. A cached text is charged like a
new one. So a turn gives the same prompt on every machine and with any cache.

All texts of a turn share one limit, regardless of author and grants. Parts of the limit are
reserved, so that contained (untrusted) text cannot use up the work that the game's own texts need.
"""

from typing import Final

from evennia_ai.engine.errors import TemplateError

MAX_WORK: Final = 45_000
"""The units of work for expanding all texts of one turn: about 5 ms of the game's thread."""
FIELDS_WORK: Final = MAX_WORK // 20
"""The work reserved for rendering the card's fields as values of other texts.

The fields are rendered up to four times, once for each form in which texts see them (`Fields`)."""
SCANNED_WORK: Final = MAX_WORK // 20
"""The work reserved for the card's texts in which lore searches for keys."""
KEYS_WORK: Final = MAX_WORK // 20
"""The work reserved for macros in the keys of a book."""
PLACED_WORK: Final = MAX_WORK - 4 * FIELDS_WORK - SCANNED_WORK - KEYS_WORK
"""The work that remains for the texts of the prompt."""
LORE_WORK: Final = MAX_WORK // 4
"""The most work that lore entries may use of `PLACED_WORK`."""
CONTAINED_WORK: Final = MAX_WORK // 4
"""The part of `PLACED_WORK` that contained (untrusted) texts may use at most."""
TEXT_WORK: Final = 10
"""The work charged for starting a text with macros."""
LOGIC_WORK: Final = 100
"""The work charged for starting a text with logic."""
NODE_WORK: Final = 3
"""The work charged for each node in the syntax tree of logic."""
PLACED_MACRO_WORK: Final = 60
"""The work charged for each macro inside logic, in addition to the work of the macro."""
PASSED_A_UNIT: Final = 7
"""The number of characters that a filter or a comparison reads for one unit of work."""
MAX_FILLED: Final = 200_000
"""The longest expanded text, in characters."""
COPIED_A_UNIT: Final = 500
"""The number of characters that are copied into a text for one unit of work."""
COUNTED_A_UNIT: Final = 16
"""The number of characters whose tokens are counted for one unit of work."""


class OutOfWorkError(TemplateError):
    """The error for a text that needs more work than the turn has left."""

    def __init__(self, *, line: int | None = None) -> None:
        super().__init__(
            "its macros and logic need more work than is left for the texts of this turn;"
            " use fewer of them, here or in the texts before it",
            line=line,
        )


class Meter:
    """A count of the work that is left in a turn. Each operation is charged before it runs."""

    __slots__ = ("left", "limit", "ran_out")

    def __init__(self, limit: int = PLACED_WORK) -> None:
        self.limit = limit
        self.left = limit
        self.ran_out = False
        """True if an operation was refused because too little work was left."""

    @property
    def spent(self) -> int:
        """The units of work charged so far."""
        return self.limit - self.left

    def pay(self, work: int) -> None:
        """Charge the work of an operation. If too little work is left, nothing is charged.

        Raises:
            OutOfWorkError: less than `work` is left, so the operation must not run.
        """
        if work > self.left:
            self.ran_out = True
            raise OutOfWorkError
        self.left -= work

    def pay_whole(self, work: int, *, at_least: int) -> None:
        """Charge the work of a cached text as if it were expanded again.

        If the work left is less than `at_least`, the work of the macros alone, expanding would
        have been refused at once, so nothing is charged. If it is between `at_least` and `work`,
        expanding would have used up the rest before it stopped, so nothing is left.
        """
        if work > self.left >= at_least:
            self.left = 0
        self.pay(work)
