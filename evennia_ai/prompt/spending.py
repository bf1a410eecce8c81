"""What one rendering of a template with logic may cost, counted as it goes.

Steps stand for time and room for memory. Both are counted and neither is measured, so a template
gives the same text, or the same error, in every turn and on every machine. The prices are such
that a component takes under 5 ms of the game's thread and under 1 MB, whatever is written in it.
"""

from typing import Final

from evennia_ai.errors import TemplateError
from evennia_ai.prompt.macros import MAX_FILLED

MAX_STEPS: Final = 10_000
"""Parts of a template that one rendering may go through."""
MAX_MADE: Final = 40_000
"""Characters that filters, `+` and loops may make on the way."""
CHARACTERS_A_STEP: Final = 20
# What a value takes beside its characters, in characters of four bytes.
_HEAD: Final = 16


class Spending:
    """What is left of one rendering, and where it stands: its line, names, loop and text."""

    __slots__ = ("line", "loop", "names", "output", "room", "steps", "written")

    def __init__(self, names: dict[str, object]) -> None:
        self.names = names
        self.steps = MAX_STEPS
        self.room = MAX_MADE
        self.output = MAX_FILLED
        self.written: list[str] = []
        self.line: int | None = None
        self.loop = (0, 0)
        """Index in the innermost loop, and how often that runs."""

    def spend(self, steps: int) -> None:
        """Pay for work before it is done; TemplateError where it cannot be paid."""
        self.steps -= steps
        if self.steps < 0:
            raise TemplateError(
                f"takes more than {MAX_STEPS} steps; make its loops shorter, or what is in them"
            )

    def make(self, characters: int) -> None:
        """Pay for a new value of this length before it is made."""
        self.room -= characters + _HEAD
        if self.room < 0:
            raise TemplateError(
                f"makes more than {MAX_MADE} characters on the way; write values out as they are,"
                " without filters, + or a loop over their letters"
            )

    def read(self, text: str) -> None:
        """Pay for going through a text once."""
        self.spend(len(text) // CHARACTERS_A_STEP)

    def write(self, text: str) -> None:
        """Put `text` behind what is written."""
        self.output -= len(text)
        if self.output < 0:
            raise TemplateError(f"makes more than {MAX_FILLED} characters")
        self.written.append(text)
