"""Where in foreign data something is wrong: what the data is called, and the steps down to it.

An error keeps the steps beside its text, so that who typed a field reads of that field and who
wrote a file reads of a place in it.
"""

from dataclasses import dataclass
from typing import Any

from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import one_line

Step = str | int


@dataclass(frozen=True, slots=True)
class Where:
    """A member of foreign data; as text it is a path such as `entry.when[0].test`.

    `within` is the text that stands before the steps.
    """

    within: str
    steps: tuple[Step, ...] = ()

    def __truediv__(self, step: Step) -> "Where":
        """The member of this name, or the item of this index, in it."""
        return Where(self.within, (*self.steps, step))

    def __str__(self) -> str:
        down = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return self.within + "".join(down)

    def wrong(self, wanted: str, value: Any) -> FormatError:
        """The error that this is not what was wanted."""
        return self.refused(f"must be {wanted}, not {one_line(repr(value))[:60]}")

    def refused(self, problem: str) -> FormatError:
        """The error that says so of this place."""
        return FormatError("book", f"{self}: {problem}", path=self.steps, problem=problem)
