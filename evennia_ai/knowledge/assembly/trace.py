"""The trace of an assembly: what each of the fifteen steps did, and what it could not do."""

from dataclasses import dataclass, field
from typing import Final

STEPS: Final = (
    *("Load Instructions:Config", "Fast pre-check", "Planner", "World Bible", "Core instructions"),
    *("Resolve requires", "Encyclopedia pages", "Linked pages", "Sources", "Talk sections"),
    *("Wikipedia", "Deduplicate", "Rank", "Trim", "Serialise"),
)
"""The steps in their order; the first has number 1."""


@dataclass(slots=True)
class Trace:
    """Grows while an assembly runs: the one thing that its steps change."""

    steps: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def did(self, number: int, what: str) -> None:
        """Tell what came of step `number`."""
        self.steps.append(f"{number}. {STEPS[number - 1]}: {what}")

    def warn(self, *warnings: str) -> None:
        """Tell what is wrong in the wiki or went wrong, each of it once."""
        self.warnings.extend(one for one in dict.fromkeys(warnings) if one not in self.warnings)
